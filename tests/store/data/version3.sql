CREATE TABLE jobs (
         id TEXT PRIMARY KEY,
         client_key TEXT NOT NULL UNIQUE,
         name TEXT NOT NULL,
         origin INTEGER NOT NULL,
         pipeline_parallel INTEGER NOT NULL,
         data_parallel INTEGER NOT NULL,
         tensor_parallel INTEGER NOT NULL,
         settings TEXT NOT NULL,
         profile TEXT NOT NULL,
         blocking_power TEXT NOT NULL,
         target TEXT NOT NULL,
         state TEXT NOT NULL,
         reason TEXT NOT NULL,
         created_at DOUBLE PRECISION NOT NULL,
         last_straggler BIGINT NOT NULL DEFAULT 0, detection TEXT NOT NULL DEFAULT '');
INSERT INTO "jobs" VALUES('a','key of a','GPT-3 ''small'' "x"',1,4,2,1,'{"schedule":"1f1b"}','stage,instruction
','70.5','economic','characterizing','why not',1700000000.0,8,'');
INSERT INTO "jobs" VALUES('b','it''s b','GPT-3 ''small'' "x"',1,4,2,1,'{"schedule":"1f1b"}','','83.64 0.1','1.05x','running','',1800000000.0,0,'');
INSERT INTO "jobs" VALUES('c','key of c','given',0,1,1,1,'{}','stage,instruction','20','','running','',1800000000.0,0,'{"mode":"act"}');
CREATE TABLE curves (
         job TEXT PRIMARY KEY REFERENCES jobs(id) ON DELETE CASCADE,
         revision INTEGER NOT NULL,
         frontier TEXT NOT NULL);
INSERT INTO "curves" VALUES('a',1,'{}');
CREATE TABLE "iterations" (
         job TEXT NOT NULL REFERENCES jobs(id) ON DELETE CASCADE,
         plan_version BIGINT NOT NULL,
         server TEXT NOT NULL,
         reports BIGINT NOT NULL,
         total_time DOUBLE PRECISION NOT NULL,
         least_time DOUBLE PRECISION NOT NULL,
         most_time DOUBLE PRECISION NOT NULL,
         square_time DOUBLE PRECISION NOT NULL,
         energy_reports BIGINT NOT NULL,
         total_energy DOUBLE PRECISION NOT NULL,
         square_energy DOUBLE PRECISION NOT NULL,
         PRIMARY KEY (job, plan_version, server));
INSERT INTO "iterations" VALUES('a',3,'',10,50.0,4.0,6.0,0.0,0,1000000.0,0.0);
INSERT INTO "iterations" VALUES('b',1,'',2,3.0,1.0,2.0,0.0,0,9.0,0.0);
INSERT INTO "iterations" VALUES('b',2,'',1,1.0,1.0,1.0,0.0,0,0.0,0.0);
CREATE TABLE marks (
         job TEXT PRIMARY KEY REFERENCES jobs(id) ON DELETE CASCADE,
         revision BIGINT NOT NULL,
         row_revision BIGINT NOT NULL,
         curve_revision BIGINT NOT NULL);
INSERT INTO "marks" VALUES('a',1,1,1);
INSERT INTO "marks" VALUES('b',1,1,0);
INSERT INTO "marks" VALUES('c',5,2,4);
CREATE TABLE measurements (
         job TEXT NOT NULL REFERENCES jobs(id) ON DELETE CASCADE,
         number BIGINT NOT NULL,
         rank INTEGER NOT NULL,
         measured TEXT NOT NULL,
         blocking_power DOUBLE PRECISION NOT NULL,
         done INTEGER NOT NULL,
         PRIMARY KEY (job, number));
INSERT INTO "measurements" VALUES('a',1,5,'1 I 1410 0.1 0.3333333333333333 12',70.5,1);
CREATE TABLE plans (
         job TEXT NOT NULL REFERENCES jobs(id) ON DELETE CASCADE,
         id BIGINT NOT NULL,
         requested_time DOUBLE PRECISION NOT NULL,
         knobs TEXT NOT NULL,
         PRIMARY KEY (job, id));
INSERT INTO "plans" VALUES('a',1,3.00000000000000044408e-01,'AA__BA');
INSERT INTO "plans" VALUES('a',2,2.0,'AB');
CREATE TABLE ranks (
         job TEXT NOT NULL REFERENCES jobs(id) ON DELETE CASCADE,
         rank INTEGER NOT NULL,
         dp_rank INTEGER NOT NULL,
         pp_rank INTEGER NOT NULL,
         tp_rank INTEGER NOT NULL,
         gpu_uuid TEXT NOT NULL,
         gpu_name TEXT NOT NULL,
         node TEXT NOT NULL,
         clocks TEXT NOT NULL,
         PRIMARY KEY (job, rank),
         UNIQUE (job, dp_rank, pp_rank, tp_rank));
INSERT INTO "ranks" VALUES('a',0,0,0,0,'GPU-0','NVIDIA A100','node1','210 1410');
INSERT INTO "ranks" VALUES('a',5,1,1,0,'GPU-5','NVIDIA A100','node1','210 1410');
INSERT INTO "ranks" VALUES('b',0,0,0,0,'GPU-0','NVIDIA A100','node1','210 1410');
CREATE TABLE schema_version (version INTEGER NOT NULL);
INSERT INTO "schema_version" VALUES(3);
CREATE TABLE stragglers (
         job TEXT NOT NULL REFERENCES jobs(id) ON DELETE CASCADE,
         id BIGINT NOT NULL,
         pipeline INTEGER NOT NULL,
         rank INTEGER NOT NULL,
         node TEXT NOT NULL,
         factor DOUBLE PRECISION NOT NULL,
         delay DOUBLE PRECISION NOT NULL,
         starts_at DOUBLE PRECISION NOT NULL,
         expires_at DOUBLE PRECISION NOT NULL,
         PRIMARY KEY (job, id));
INSERT INTO "stragglers" VALUES('a',7,1,-1,'',1.2,0.0,9.0,-1.0);
CREATE TABLE versions (
         job TEXT NOT NULL REFERENCES jobs(id) ON DELETE CASCADE,
         version BIGINT NOT NULL,
         reason TEXT NOT NULL,
         at DOUBLE PRECISION NOT NULL,
         plan BIGINT NOT NULL,
         exceptions TEXT NOT NULL,
         PRIMARY KEY (job, version));
INSERT INTO "versions" VALUES('a',3,'straggler',5.5,2,'1 1');
CREATE TABLE work (
         job TEXT PRIMARY KEY REFERENCES jobs(id) ON DELETE CASCADE,
         server TEXT NOT NULL,
         leased_until DOUBLE PRECISION NOT NULL,
         wanted_at DOUBLE PRECISION NOT NULL,
         urgent INTEGER NOT NULL,
         wanted BIGINT NOT NULL,
         claimed BIGINT NOT NULL);
INSERT INTO "work" VALUES('c','',0.0,1800000000.0,1,1,0);
CREATE INDEX work_by_age ON work (urgent, wanted_at);
