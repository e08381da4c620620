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
         last_straggler BIGINT NOT NULL DEFAULT 0, detection TEXT NOT NULL DEFAULT '', library TEXT NOT NULL DEFAULT '', profile_source TEXT NOT NULL DEFAULT '', sweep_round INTEGER NOT NULL DEFAULT 0, settled_round INTEGER NOT NULL DEFAULT 0, next_profile TEXT NOT NULL DEFAULT '', next_blocking_power TEXT NOT NULL DEFAULT '', finished_at DOUBLE PRECISION NOT NULL DEFAULT 0, conditions TEXT NOT NULL DEFAULT '', owner TEXT NOT NULL DEFAULT '');
INSERT INTO jobs VALUES('a','key of a','GPT-3 ''small'' "x"',1,4,2,1,'{"schedule":"1f1b"}',replace('stage,instruction\n','\n',char(10)),'70.5','economic','characterizing','why not',1700000000.0,8,'{}','{"model":"GPT-3"}','measured',2,0,replace('stage\n','\n',char(10)),'71.5',0.0,'{"a":2}','alice');
INSERT INTO jobs VALUES('b','key of b','GPT-3 ''small'' "x"',1,4,2,1,'{"schedule":"1f1b"}','','83.64 0.1','1.05x','finished','done',1700000001.0,0,'','{"model":"GPT-3"}','',0,0,'','',3.0,'','');
INSERT INTO jobs VALUES('c','key of c','GPT-3 ''small'' "x"',1,4,2,1,'{"schedule":"1f1b"}','','83.64 0.1','1.05x','registering','',1699999999.0,0,'','{"model":"GPT-3"}','',0,0,'','',0.0,'','');
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
INSERT INTO ranks VALUES('a',0,0,0,0,'GPU-0','NVIDIA A100','node1','210 1410');
INSERT INTO ranks VALUES('a',5,1,1,0,'GPU-5','NVIDIA A100','node1','210 1410');
INSERT INTO ranks VALUES('b',0,0,0,0,'GPU-0','NVIDIA A100','node1','210 1410');
CREATE TABLE measurements (
         job TEXT NOT NULL REFERENCES jobs(id) ON DELETE CASCADE,
         number BIGINT NOT NULL,
         rank INTEGER NOT NULL,
         measured TEXT NOT NULL,
         blocking_power DOUBLE PRECISION NOT NULL,
         done INTEGER NOT NULL, sweep_round INTEGER NOT NULL DEFAULT 0, blocking_power_std DOUBLE PRECISION NOT NULL DEFAULT 0, counter_period DOUBLE PRECISION NOT NULL DEFAULT 0, sweep TEXT NOT NULL DEFAULT '', notes TEXT NOT NULL DEFAULT '', waiting TEXT NOT NULL DEFAULT '',
         PRIMARY KEY (job, number));
INSERT INTO measurements VALUES('a',1,5,'1 I 1410 0.1 0.3333333333333333 12;1 F 1305 0.2 7 40 t0.0004 e0.14285714285714285 x1 c55.5 w2048 u1.1e-05 v-0.004 r0.002 s0.3',70.500000000000000001,1,2,1.1999999999999999555,0.020000000000000000416,'120 64.1 23000 3.1 -400',replace('clock 1305 did not take: 1290 seen\nMIG is on','\n',char(10)),'1410 70.5 1.2');
CREATE TABLE curves (
         job TEXT PRIMARY KEY REFERENCES jobs(id) ON DELETE CASCADE,
         revision INTEGER NOT NULL,
         frontier TEXT NOT NULL);
INSERT INTO curves VALUES('a',1,'{}');
CREATE TABLE plans (
         job TEXT NOT NULL REFERENCES jobs(id) ON DELETE CASCADE,
         id BIGINT NOT NULL,
         requested_time DOUBLE PRECISION NOT NULL,
         knobs TEXT NOT NULL,
         PRIMARY KEY (job, id));
INSERT INTO plans VALUES('a',1,0.3000000000000000444,'AA__BA');
INSERT INTO plans VALUES('a',2,2.0,'AB');
CREATE TABLE versions (
         job TEXT NOT NULL REFERENCES jobs(id) ON DELETE CASCADE,
         version BIGINT NOT NULL,
         reason TEXT NOT NULL,
         at DOUBLE PRECISION NOT NULL,
         plan BIGINT NOT NULL,
         exceptions TEXT NOT NULL,
         PRIMARY KEY (job, version));
INSERT INTO versions VALUES('a',3,'straggler',5.5,2,'1 1');
INSERT INTO versions VALUES('b',1,'target',1.0,0,'');
INSERT INTO versions VALUES('b',2,'target',2.0,0,'');
INSERT INTO versions VALUES('b',3,'target',3.0,0,'');
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
INSERT INTO stragglers VALUES('a',7,1,-1,'',1.1999999999999999555,0.0,9.0,-1.0);
CREATE TABLE schema_version (version INTEGER NOT NULL);
INSERT INTO schema_version VALUES(10);
CREATE TABLE marks (
         job TEXT PRIMARY KEY REFERENCES jobs(id) ON DELETE CASCADE,
         revision BIGINT NOT NULL,
         row_revision BIGINT NOT NULL,
         curve_revision BIGINT NOT NULL, instance BIGINT NOT NULL DEFAULT 0);
INSERT INTO marks VALUES('a',2,2,2,0);
INSERT INTO marks VALUES('b',5,2,0,0);
INSERT INTO marks VALUES('c',1,1,0,0);
CREATE TABLE IF NOT EXISTS "iterations" (
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
INSERT INTO iterations VALUES('a',3,'183a9d45736bfc52',10,50.0,4.0,6.0,252.0,9,1000000.0,120000000000.0);
INSERT INTO iterations VALUES('b',1,'183a9d45736bfc52',1,2.0,1.0,2.0,0.0,0,0.0,0.0);
INSERT INTO iterations VALUES('b',2,'183a9d45736bfc52',2,4.0,1.0,2.0,0.0,0,0.0,0.0);
INSERT INTO iterations VALUES('b',3,'183a9d45736bfc52',3,6.0,1.0,2.0,0.0,0,0.0,0.0);
CREATE TABLE work (
         job TEXT PRIMARY KEY REFERENCES jobs(id) ON DELETE CASCADE,
         server TEXT NOT NULL,
         leased_until DOUBLE PRECISION NOT NULL,
         wanted_at DOUBLE PRECISION NOT NULL,
         urgent INTEGER NOT NULL,
         wanted BIGINT NOT NULL,
         claimed BIGINT NOT NULL);
INSERT INTO work VALUES('a','',0.0,1795469422.271990776,0,1,0);
INSERT INTO work VALUES('c','',0.0,1795469422.2799971103,1,1,0);
CREATE TABLE profiles (
         id TEXT PRIMARY KEY,
         job TEXT NOT NULL,
         model TEXT NOT NULL,
         layout TEXT NOT NULL,
         metadata TEXT NOT NULL,
         profile TEXT NOT NULL,
         blocking_power TEXT NOT NULL,
         created_at DOUBLE PRECISION NOT NULL, conditions TEXT NOT NULL DEFAULT '');
INSERT INTO profiles VALUES('p-a','a','GPT-3','{}','{"a":1}',replace('stage,x\n','\n',char(10)),'70.5 0.3333333333333333',1700000000.0,'{"c":3}');
CREATE TABLE history (
         job TEXT NOT NULL,
         server TEXT NOT NULL,
         resolution INTEGER NOT NULL,
         start_at BIGINT NOT NULL,
         name TEXT NOT NULL,
         owner TEXT NOT NULL,
         ranks INTEGER NOT NULL,
         reports BIGINT NOT NULL,
         total_time DOUBLE PRECISION NOT NULL,
         energy_reports BIGINT NOT NULL,
         energy_time DOUBLE PRECISION NOT NULL,
         energy DOUBLE PRECISION NOT NULL,
         promised DOUBLE PRECISION NOT NULL,
         compared DOUBLE PRECISION NOT NULL,
         realised DOUBLE PRECISION NOT NULL, first_at DOUBLE PRECISION NOT NULL DEFAULT 0, last_at DOUBLE PRECISION NOT NULL DEFAULT 0,
         PRIMARY KEY (job, server, resolution, start_at));
INSERT INTO history VALUES('a','183a9d45736bfc52',1,1699999200,'GPT-3 ''small'' "x"','alice',8,10,50.0,9,45.0,1000000.0,150000.0,0.33333333333333331482,-0.10000000000000000555,1699999300.2499999999,1699999400.5);
INSERT INTO history VALUES('a','183a9d45736bfc52',2,1699920000,'GPT-3 ''small'' "x"','alice',8,10,50.0,9,45.0,1000000.0,150000.0,0.33333333333333331482,-0.10000000000000000555,1699920100.2499999999,1699920200.4999999999);
INSERT INTO history VALUES('gone','183a9d45736bfc52',2,1699833600,'llama','bob',2,4,8.0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0);
CREATE TABLE labels (job TEXT PRIMARY KEY, labels TEXT NOT NULL);
INSERT INTO labels VALUES('a','project=x team=vision');
CREATE INDEX work_by_age ON work (urgent, wanted_at);
CREATE INDEX profiles_by_layout ON profiles (layout, created_at);
CREATE INDEX jobs_by_age ON jobs (created_at, id, state, finished_at);
CREATE INDEX history_by_time ON history (resolution, start_at);
