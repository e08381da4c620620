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
         last_straggler BIGINT NOT NULL DEFAULT 0);
INSERT INTO jobs VALUES('a','key of a','GPT-3 ''small'' "x"',1,4,2,1,'{"schedule":"1f1b"}',replace('stage,instruction\n','\n',char(10)),'70.5','economic','characterizing','why not',1700000000.0,8);
INSERT INTO jobs VALUES('b','it''s b','GPT-3 ''small'' "x"',1,4,2,1,'{"schedule":"1f1b"}','','83.64 0.1','1.05x','running','',1800000000.0,0);
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
         done INTEGER NOT NULL,
         PRIMARY KEY (job, number));
INSERT INTO measurements VALUES('a',1,5,'1 I 1410 0.1 0.3333333333333333 12',70.500000000000000001,1);
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
INSERT INTO schema_version VALUES(2);
CREATE TABLE iterations (
         job TEXT NOT NULL REFERENCES jobs(id) ON DELETE CASCADE,
         plan_version BIGINT NOT NULL,
         reports BIGINT NOT NULL,
         total_time DOUBLE PRECISION NOT NULL,
         least_time DOUBLE PRECISION NOT NULL,
         most_time DOUBLE PRECISION NOT NULL,
         total_energy DOUBLE PRECISION NOT NULL,
         PRIMARY KEY (job, plan_version));
INSERT INTO iterations VALUES('a',3,10,50.0,4.0,6.0,1000000.0);
INSERT INTO iterations VALUES('b',1,2,3.0,1.0,2.0,9.0);
INSERT INTO iterations VALUES('b',2,1,1.0,1.0,1.0,0.0);
