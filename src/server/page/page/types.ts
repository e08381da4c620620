// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Answers of the API, as far as the page shows them; docs/reference/api.md has all of them.

export type State =
  'registering' | 'profiling' | 'characterizing' | 'running' | 'failed' | 'finished';

export interface Interval {
  least_percent: number;
  most_percent: number;
}

export interface PipelinePlan {
  requested_time_s: number;
  iteration_time_s: number;
  energy_j: number;
  saving_percent: number;
}

// The plan against iterations at default clocks, where that was measured.
export interface DefaultClocks {
  iteration_time_s: number;
  energy_j: number;
  slowdown_percent: number;
  saving_percent: number;
}

export interface Plan extends Partial<PipelinePlan> {
  version: number;
  reason: string;
  at: number;
  sentence?: string;
  saving_interval?: Interval;
  default_clocks?: DefaultClocks;
  whole_job?: {
    iteration_time_s: number;
    energy_j: number;
    saving_percent: number;
    straggling: boolean;
  };
  pipelines?: Record<string, PipelinePlan>;
}

export interface Estimate {
  mean: number;
  least: number;
  most: number;
}

// Of the newest plan that was compared.
export interface LastMeasuredSaving extends Estimate {
  plan_version: number;
}

export interface Measured {
  iterations: number;
  iteration_time_s: number;
  power_w: number | null;
  at: number;
}

// A span of time in which ranks reported iterations.
export interface HistoryRow {
  start: number;
  iterations: number;
  iteration_time_s: number | null;
  power_w: number | null;
  measured_share: number;
  energy_j: number | null;
  predicted_saved_j: number | null;
  compared_energy_j: number;
  measured_saved_j: number | null;
}

export interface History {
  span_s: number;
  rows: HistoryRow[];
}

export interface JobSummary {
  id: string;
  revision: number;
  name: string;
  labels?: Record<string, string>;
  state: State;
  reason: string;
  created_at: number;
  world_size: number;
  pipeline_parallel: number;
  data_parallel: number;
  tensor_parallel: number;
  ranks_registered: number;
  ranks_measured: number;
  at: string;
  progress: number;
  refined: boolean;
  believable: boolean;
  complaining: number;
  measured: Measured | null;
  measured_saving: LastMeasuredSaving | null;
  following?: number;
  ended?: boolean;
  profile_source: string | null;
  plan: Plan | null;
  stragglers: number;
  slow_pipelines: number;
}

export interface Straggler {
  straggler_id: number;
  pipeline?: number;
  rank?: number;
  node?: string;
  factor?: number;
  delay_s?: number;
  starts_at: number;
  expires_at: number | null;
}

export interface MeasuredSaving {
  plan_version: number;
  pairs: number;
  with_plan_s: number;
  without_plan_s: number;
  time_percent: Estimate | null;
  energy_pairs: number;
  with_plan_j_per_gpu: number | null;
  without_plan_j_per_gpu: number | null;
  saving_percent: Estimate | null;
  settling: 'unknown' | 'over' | 'goes_on';
  agrees: boolean | null;
}

export interface Savings {
  kind: 'predicted' | 'measured' | 'estimated';
  predicted: {
    time_percent: number;
    saving_percent: number;
    saving_interval?: Interval;
    default_clocks?: DefaultClocks;
  } | null;
  comparison: { every: number; iterations: number } | null;
  measured: MeasuredSaving[];
  dropped_cycles: number;
  shadow_ranks: number;
}

export interface Condition {
  name: string;
  planned: number;
  assumed: boolean;
  library: boolean;
  measured: number | null;
  measured_std: number | null;
  ranks: number;
}

export interface ClockLatency {
  clock_mhz: number;
  planned_s: number;
  measured_s: number | null;
  measured_s_std: number | null;
  ranks: number;
}

export interface Transfer {
  boundary: number;
  planned_s: number;
  measured_s: number | null;
  measured_s_std: number | null;
  iterations: number;
}

export interface TimelineHead {
  iteration: number;
  plan_version: number;
  at: number;
}

// An iteration as the ranks of a pipeline timed it.
export interface Timeline extends TimelineHead {
  pipeline: number;
  iteration_time_s: number;
  error_s: number | null;
  ranks: {
    rank: number;
    offset_s: number | null;
    offset_error_s: number | null;
    computations: Run[];
  }[];
}

export interface SlowRank {
  rank: number;
  pipeline: number;
  stage: number;
  node: string;
  factor: number;
  since_iteration: number;
  cause: string;
}

export interface Job extends Omit<JobSummary, 'stragglers'> {
  settings: Record<string, unknown> | null;
  notes: { severity: 'odd' | 'implausible' | 'impossible'; text: string }[];
  missing_ranks?: number[];
  frontier: {
    fastest_s: number;
    min_energy_s: number;
    tstar_s: number;
    baseline_s: number;
    plans: number;
  } | null;
  stragglers: Straggler[];
  model: string;
  profiling: {
    again: boolean;
    sweep: { ranks: number; iterations: number; seconds: number; joules: number } | null;
    throttled: { stage: number; instruction: string; frequency: number }[];
    notes: { note: string; ranks: number; first_ranks: number[] }[];
  };
  conditions: {
    source: 'assumed' | 'measured' | 'given' | 'none' | 'library';
    from: { job: string; at: number; profile: string } | null;
    changing: boolean;
    iterations: number;
    calls: number;
    figures: Condition[];
    latency_at: ClockLatency[];
    transfers: Transfer[];
  };
  timeline: TimelineHead | null;
  drift: { percent: number; sentence: string }[];
  detection: {
    mode: 'off' | 'advisory' | 'act';
    threshold: number;
    window: number;
    watched_ranks: number;
    reporting_ranks: number;
    slow: SlowRank[];
    together: string;
    iteration_cause: string;
    findings: { kind: string; iteration: number; sentence: string }[];
  };
  savings: Savings;
  clients: {
    counts: Record<string, number>;
    states: Record<string, number>;
    complaining: number;
    troubled: { rank: number; error: string }[];
  };
}

export interface GridCell {
  ranks: number;
  lateness: number | null;
  latest: number | null;
  refused: number;
  complaining: number;
}

export interface Grid {
  pipelines: number;
  stages: number;
  tensor_parallel: number;
  pipelines_each: number;
  stages_each: number;
  rows: { cells: GridCell[] }[];
}

export interface Rank {
  rank: number;
  dp_rank: number;
  pp_rank: number;
  tp_rank: number;
  node: string;
  gpu: { uuid: string; name: string };
  lateness: number | null;
  state: string | null;
  error?: string;
  plan_version?: number;
  counts?: Record<string, number>;
}

// A rank stands for its GPU. Null: not told.
export interface NodeGpu {
  uuid: string | null;
  name: string | null;
  job: string;
  job_name: string;
  rank: number;
  process: string | null;
  state: string | null;
  heard_at: number | null;
  client_version: string | null;
  agent_version: string | null;
  relay_version: string | null;
  refused: number;
  clock_conflicts: string[];
  error: string | null;
}

export interface NodeSummary {
  node: string;
  heard_at: number | null;
  gpu_count: number;
  leased: number;
  refused: number;
  complaining: number;
  clock_conflicts: number;
  gpus: NodeGpu[];
}

export interface Run {
  type: string;
  stage: number;
  microbatch: number;
  knob: number;
  start_s: number;
  duration_s: number;
  fused?: boolean;
}

export interface Computation extends Run {
  energy_j: number;
}

export interface PlanFile {
  microbatches: number;
  iteration_time_s: number;
  baseline: {
    iteration_time_s: number;
    computations: { type: string; stage: number; knob: number; duration_s: number }[];
  };
  ranks: { rank: number; computations: Computation[] }[];
}
