// SPDX-License-Identifier: Apache-2.0

package settings

import "github.com/creelrm/creel/policies"

var creelStoreKeys = []Setting{
	{
		Key:     "creel.store.url",
		Type:    URL,
		Default: "memory",
		Doc: "The state store: memory (one process), redis://, rediss://, redis-sentinel://, redis-cluster://, or " +
			"Hadoop's in ZooKeeper, zk://HOST:PORT,HOST:PORT/PATH, or in MariaDB, mysql://USER@HOST:PORT/DATABASE. " +
			"$CREEL_STORE sets it over the files. Without it, Hadoop's keys may name the latter two. Routers, proxies, " +
			"rebalancers and agents need it.",
	},
	{
		Key:  "creel.store.password-file",
		Type: Path,
		Doc: "A file with the password of Redis or MariaDB alone, instead of one in creel.store.url; a line end after it does not " +
			"count. It is read at the start.",
	},
	{
		Key:  "creel.store.sentinel-password-file",
		Type: Path,
		Doc:  "A file with the password of the Sentinels, instead of sentinel_password in creel.store.url.",
	},
	{
		Key:  "creel.redis.tls.truststore",
		Type: Path,
		Doc: "The signers of Redis' certificates (PEM, JKS or PKCS12), of the store and of creel.rm.state.url, if the URL " +
			"asks for TLS; unset: the machine's. A changed file is read again, as are the files below.",
	},
	{
		Key:  "creel.redis.tls.truststore-password",
		Type: String,
		Doc:  "The password of creel.redis.tls.truststore, if hadoop.security.credential.provider.path has none.",
	},
	{
		Key:  "creel.redis.tls.certificate",
		Type: Path,
		Doc:  "A PEM file with the certificate that creel shows to Redis (tls-auth-clients), with creel.redis.tls.key.",
	},
	{Key: "creel.redis.tls.key", Type: Path, Doc: "A PEM file with the key of creel.redis.tls.certificate."},
	{
		Key:  "creel.redis.tls.keystore",
		Type: Path,
		Doc:  "A keystore (JKS or PKCS12) with that certificate and its key, instead of the PEM files.",
	},
	{
		Key:  "creel.redis.tls.keystore-password",
		Type: String,
		Doc:  "The password of creel.redis.tls.keystore, if hadoop.security.credential.provider.path has none.",
	},
	{
		Key:     "creel.store.prefix",
		Type:    String,
		Default: "creel",
		Doc:     "Prefix of the store's keys, so that federations can share a Redis.",
	},
	{
		Key:     "creel.federation.name",
		Type:    String,
		Default: "",
		Doc:     "Name of the federation. The first process writes it into the store; one with another name does not start.",
	},
	{Key: "creel.store.timeout", Type: Duration, Default: "2s", Doc: "Timeout of one call to the store."},
	{Key: "creel.store.pool-size", Type: Int, Default: "16", Doc: "Connections to each Redis server."},
	{
		Key:     "creel.store.wait-replicas",
		Type:    Int,
		Default: "0",
		Doc:     "Replicas that must confirm a write; with 0 a failover may lose the last writes.",
	},
	{
		Key:     "creel.store.wait-timeout",
		Type:    Duration,
		Default: "1s",
		Doc:     "How long a write waits for these replicas.",
	},
	{
		Key:     "creel.store.home-ttl",
		Type:    Duration,
		Default: "24h",
		Doc:     "How long the store remembers an ended application's home.",
	},
	{
		Key:     "creel.store.poll-interval",
		Type:    Duration,
		Default: "2s",
		Doc:     "How often members and policies are read again, in addition to the store's notifications.",
	},
	{
		Key:  "creel.subcluster.id",
		Type: String,
		Doc:  "This member's name in the federation; empty: yarn.resourcemanager.cluster-id.",
	},
	{
		Key:     "creel.membership.heartbeat-interval",
		Type:    Duration,
		Default: "1s",
		Doc:     "The time between a member's heartbeats.",
	},
	{
		Key:  "creel.http.allowed-hosts",
		Type: List,
		Doc: "Names of this host under which browsers may reach a router or ResourceManager over loopback, in " +
			"addition to localhost and addresses; * is any.",
	},
	{
		Key:     "creel.membership.lease",
		Type:    Duration,
		Default: "10s",
		Doc:     "A member without a heartbeat for this time counts as lost.",
	},
	{
		Key:     "creel.membership.take-over",
		Type:    Bool,
		Default: "false",
		Doc:     "Take over the name of a live member, which then loses its membership (--take-over).",
	},
	{
		Key:     "creel.membership.accept-empty",
		Type:    Bool,
		Default: "false",
		Doc: "Start on an empty journal even if the store has applications of this member; their state is lost " +
			"(--accept-empty).",
	},
	{
		Key:  "creel.cluster.secret-file",
		Type: Path,
		Doc: "A file with the secret that encrypts tokens in the store and signs members there. Routers and " +
			"proxies with the file accept signed members only. It is created if missing, and must be the same " +
			"for all daemons. Empty: a secret is created in the store, and nothing is signed.",
	},
}

var creelRMKeys = []Setting{
	{
		Key:  "creel.rm.proxy.hosts",
		Type: List,
		Doc: "Hosts from which the web proxy fetches AMs' pages, in addition to the AM's own (for example " +
			"Spark's SPARK_PUBLIC_DNS); * is any.",
	},
	{
		Key:  "creel.rm.data",
		Type: Path,
		Doc:  "The directory of the journal; empty, and no state in Redis or ZooKeeper: no state survives a restart.",
	},
	{
		Key:  "creel.rm.state.url",
		Type: URL,
		Doc: "The Redis that keeps the ResourceManager's state instead of a journal, a URL as in creel.store.url. " +
			"Another host continues the state: it fences the previous ResourceManager. Add wait=1 for a Redis that " +
			"fails over. Keys begin with creel.store.prefix.",
	},
	{
		Key:  "creel.rm.state.password-file",
		Type: Path,
		Doc:  "A file with the password of that Redis, instead of one in creel.rm.state.url.",
	},
	{
		Key:     "creel.rm.state.hadoop-records",
		Type:    Bool,
		Default: "false",
		Doc: "Whether the state in ZooKeeper also has the records of Hadoop's ResourceManager, so that a pair may be of " +
			"one creel and one Hadoop ResourceManager. It needs yarn.resourcemanager.store.class=ZKRMStateStore.",
	},
	{
		Key:     "creel.rm.ha.lease",
		Type:    Duration,
		Default: "5s",
		Doc: "The time after which the standby of a pair takes over from a silent active one, the same at both. An " +
			"active one whose process pauses longer, or cannot reach Redis for as long, becomes standby. Over " +
			"ZooKeeper hadoop.zk.timeout-ms decides instead.",
	},
	{
		Key:     "creel.rm.journal.sync",
		Type:    Bool,
		Default: "true",
		Doc:     "Whether a change is on disk before it is acted on.",
	},
	{Key: "creel.rm.journal.batch", Type: Int, Default: "1024", Doc: "The most changes in one write to disk."},
	{
		Key:     "creel.rm.node-order",
		Type:    Enum,
		Default: "spread",
		Choices: []string{"spread", "pack"},
		Doc:     "Whether containers spread over nodes or fill one node after the other; queues may override it.",
	},
	{
		Key:     "creel.rm.opportunistic.shed",
		Type:    Enum,
		Default: "limit",
		Choices: []string{"limit", "move"},
		Doc: "Which waiting opportunistic containers nodes end, so that their AMs ask again; limit: all above the " +
			"limit of the queue, as in Hadoop; move: only those for which a shorter queue has a place. " +
			"QUEUE_WAIT_TIME has no limit of the length.",
	},
	{
		Key:     "creel.rm.opportunistic.placement",
		Type:    Enum,
		Default: "random",
		Choices: []string{"random", "least-filled"},
		Doc: "The node of an opportunistic container whose ask names no place; random: the first of the least loaded " +
			"nodes that admits it, from a random one on, as in Hadoop; least-filled: of all nodes, the one whose " +
			"containers, running and waiting, are the smallest part of its size.",
	},
	{
		Key:     "creel.rm.recovery-wait",
		Type:    Duration,
		Default: "0s",
		Doc: "How long after a restart no container is granted; " +
			"yarn.resourcemanager.work-preserving-recovery.scheduling-wait-ms overrides it if set.",
	},
	{
		Key:     "creel.rm.inbox",
		Type:    Int,
		Default: "65536",
		Doc:     "Events that may wait for the scheduler; further calls are answered \"try again\".",
	},
	{
		Key:     "creel.rm.heartbeat-interval-max",
		Type:    Duration,
		Default: "10s",
		Doc:     "The longest heartbeat interval of nodes when the ResourceManager is loaded.",
	},
	{
		Key:  "creel.authorizer.url",
		Type: URL,
		Doc: "The outside authoriser that decides about rights at queues instead of their access lists: a POST by the data " +
			"API of Open Policy Agent, such as http://127.0.0.1:8181/v1/data/yarn/allow. Empty: the lists decide.",
	},
	{
		Key:     "creel.authorizer.access-lists",
		Type:    Enum,
		Default: "never",
		Choices: []string{"never", "when-away", "also"},
		Doc: "When access lists of queues count beside the outside authoriser: never, while it does not answer, or also to " +
			"allow a request that it denies.",
	},
	{
		Key:     "creel.authorizer.timeout",
		Type:    Duration,
		Default: "2s",
		Doc:     "How long a call waits for the outside authoriser; without an answer it is denied, or the lists decide.",
	},
	{
		Key:     "creel.authorizer.cache-time",
		Type:    Duration,
		Default: "30s",
		Doc:     "How long an answer of the outside authoriser is used, at least 1s.",
	},
	{
		Key:     "creel.authorizer.cache-size",
		Type:    Int,
		Default: "100000",
		Doc:     "The most stored answers of the outside authoriser; one is for a user, a queue and a right.",
	},
	{
		Key:  "creel.authorizer.ca-file",
		Type: Path,
		Doc: "The certificate authorities (PEM, JKS or PKCS12) that may sign the outside authoriser's certificate, instead " +
			"of the machine's.",
	},
	{
		Key:  "creel.authorizer.token-file",
		Type: Path,
		Doc:  "A file with the bearer token for the outside authoriser; it is read for each call, so that it can be renewed.",
	},
	{
		Key:     "creel.scheduler.**.node-order",
		Type:    Enum,
		Choices: []string{"spread", "pack"},
		Doc: "The node order of one queue, by its path: creel.scheduler.root.a.node-order; its children " +
			"inherit it.",
	},
}

var creelNodeKeys = []Setting{
	{Key: "creel.nm.simulate", Type: Int, Default: "0", Doc: "Simulated nodes in this process; 0: one real node."},
	{Key: "creel.nm.simulate.memory-mb", Type: Int, Default: "10240", Doc: "Memory of a simulated node in MiB."},
	{Key: "creel.nm.simulate.vcores", Type: Int, Default: "10", Doc: "Virtual cores of a simulated node."},
	{Key: "creel.nm.simulate.racks", Type: Int, Default: "10", Doc: "Racks of the simulated nodes."},
	{
		Key:     "creel.nm.simulate.connections",
		Type:    Int,
		Default: "4",
		Doc:     "Connections of the simulated nodes to the ResourceManager.",
	},
	{
		Key:     "creel.nm.simulate.run-time",
		Type:    Duration,
		Default: "1s",
		Doc:     "How long a simulated container runs if its environment sets no time.",
	},
	{
		Key:     "creel.nm.simulate.use",
		Type:    Enum,
		Default: "full",
		Choices: []string{"full", "drawn"},
		Doc: "The reported use of simulated containers: their whole size, or one that is drawn for each container and " +
			"changes over time; CREEL_SIM_USE in a container's environment sets it in percent.",
	},
	{
		Key:     "creel.nm.overallocation.predictor",
		Type:    Enum,
		Default: "none",
		Choices: []string{"none", "peak"},
		Doc: "What a node keeps free of opportunistic containers on allocated resources: the use of its last look, or " +
			"the predicted peak of its use.",
	},
	{
		Key:     "creel.nm.queue.adaptive",
		Type:    Bool,
		Default: "false",
		Doc: "Whether a node's opportunistic queue is only so long that the node is busy between two heartbeats, by " +
			"the run time of its containers, and at most yarn.nodemanager.opportunistic-containers-max-queue-length.",
	},
	{
		Key:     "creel.nm.queue.order",
		Type:    Enum,
		Default: "arrival",
		Choices: []string{"arrival", "work"},
		Doc: "The order of a node's opportunistic queue; work: containers of the job with the least remaining work " +
			"first, which AMs set as CREEL_REMAINING_WORK_MS in the container's environment.",
	},
	{
		Key:     "creel.nm.queue.patience",
		Type:    Duration,
		Default: "60s",
		Doc:     "How long a container waits in a queue by work until no other passes it.",
	},
	{
		Key:     "creel.nm.queue.estimate-wait",
		Type:    Bool,
		Default: "false",
		Doc: "Whether a node reports how long a further opportunistic container would wait, by the run times of " +
			"each application's containers on it. The load comparator QUEUE_WAIT_TIME needs it; Hadoop's nodes " +
			"report 0.",
	},
}

var creelRouterKeys = []Setting{
	{
		Key:     "creel.router.client.max-calls",
		Type:    Int,
		Default: "8192",
		Doc:     "Client calls in flight at a router; further ones are answered \"try again\".",
	},
	{
		Key:     "creel.router.forward-timeout",
		Type:    Duration,
		Default: "10s",
		Doc:     "How long one subcluster may take to answer a forwarded call.",
	},
	{
		Key:     "creel.router.submit-timeout",
		Type:    Duration,
		Default: "30s",
		Doc:     "How long a submission may take over all subclusters that it tries.",
	},
	{
		Key:     "creel.router.unclear-wait",
		Type:    Duration,
		Default: "2m",
		Doc: "After a submission without an answer: how long a Hadoop ResourceManager must answer that it does " +
			"not know the application before another subcluster is tried.",
	},
	{
		Key:     "creel.router.list-timeout",
		Type:    Duration,
		Default: "5s",
		Doc:     "How long a list waits for its slowest subcluster.",
	},
	{
		Key:     "creel.router.last-parts",
		Type:    Duration,
		Default: "0s",
		Doc: "How long a list includes the last known applications or nodes of a subcluster that does not " +
			"answer, if the same user requests the same list. Their age is in the header " +
			"X-Last-Known-SubClusters (REST) or in each application's diagnostics (RPC). Lists of nodes by RPC, " +
			"and all other lists, do not include them.",
	},
	{
		Key:     "creel.router.breaker.failures",
		Type:    Int,
		Default: "5",
		Doc:     "Consecutive failures after which a router stops calling a subcluster for a while.",
	},
	{
		Key:     "creel.router.breaker.open-time",
		Type:    Duration,
		Default: "5s",
		Doc:     "How long a router does not call such a subcluster.",
	},
	{
		Key:     "creel.router.home-cache",
		Type:    Int,
		Default: "100000",
		Doc:     "Homes of applications that a router caches.",
	},
	{
		Key:     "creel.router.policy",
		Type:    Enum,
		Default: "balanced",
		Choices: policies.HomeNames(),
		Doc:     "The policy that chooses homes for queues without a policy in the store.",
	},
	{
		Key:     "creel.router.proxy-user",
		Type:    String,
		Default: "${user.name}",
		Doc: "The user as which a router calls ResourceManagers on behalf of its clients. With Kerberos it is the short name of " +
			"yarn.router.kerberos.principal instead.",
	},
	{
		Key:     "creel.router.trial-user",
		Type:    String,
		Default: "creel-trial",
		Doc: "The user in whose name a router tries kills and refreshes at each member that joins; it needs no " +
			"account. Name one that the members' hadoop.proxyuser.* allow. Empty: no trials.",
	},
	{Key: "creel.router.decisions-kept", Type: Int, Default: "10000", Doc: "Decisions stored for `creel app why`."},
	{
		Key:     "creel.router.dashboard",
		Type:    Bool,
		Default: "true",
		Doc:     "Whether the web address serves the dashboard.",
	},
	{
		Key: "creel.router.grafana-url",
		Doc: "Address of the Grafana dashboard of deploy/grafana, such as https://grafana.example/d/creel. The console's " +
			"pages link to it, a member's page with that member selected. Empty: no links.",
	},
}

var creelProxyKeys = []Setting{
	{
		Key:     "creel.proxy.call-timeout",
		Type:    Duration,
		Default: "10s",
		Doc:     "Timeout of one call to a subcluster.",
	},
	{
		Key:     "creel.proxy.member-timeout",
		Type:    Duration,
		Default: "10s",
		Doc:     "How long a subcluster may fail to answer before its asks move to others.",
	},
	{
		Key:     "creel.proxy.heartbeat-interval",
		Type:    Duration,
		Default: "250ms",
		Doc:     "The heartbeat interval of an unmanaged AM that waits for containers.",
	},
	{
		Key:     "creel.proxy.max-sessions",
		Type:    Int,
		Default: "10000",
		Doc:     "The most application attempts that one proxy serves.",
	},
	{
		Key:     "creel.proxy.policy",
		Type:    Enum,
		Default: "balanced",
		Choices: policies.SplitNames(),
		Doc:     "The policy that splits asks of queues without a policy in the store.",
	},
	{
		Key:     "creel.proxy.move-asks-after",
		Type:    Duration,
		Default: "30s",
		Doc: "How long asks wait at a subcluster that grants nothing before they are tried elsewhere. With the " +
			"balanced policy: a hundredth of it if the subcluster reports no free capacity, or capacity for " +
			"fewer containers than wait there.",
	},
	{
		Key:     "creel.proxy.long-queue",
		Type:    Int,
		Default: "5",
		Doc: "The length from which on a node's queue of opportunistic containers is long. If the queues of all " +
			"least loaded nodes at home are, asks go to subclusters with shorter ones, with a UAM if necessary; " +
			"0: lengths do not matter.",
	},
	{
		Key:     "creel.proxy.idle-uam-after",
		Type:    Duration,
		Default: "60s",
		Doc:     "How long an unmanaged AM without containers and asks stays registered at its subcluster.",
	},
	{
		Key:     "creel.proxy.shuffling-types",
		Type:    List,
		Default: "MAPREDUCE,SPARK,TEZ",
		Doc: "Types of applications whose completed containers leave data on their nodes for others. A " +
			"subcluster that ran such a container is released only when the application ends.",
	},
	{
		Key:     "creel.proxy.one-id-types",
		Type:    List,
		Default: "MAPREDUCE,TEZ",
		Doc: "Types of applications whose containers find each other's data on a node by the application's id. " +
			"If such an unmanaged AM dies at a Hadoop ResourceManager, which accepts an id once, it is not " +
			"started again.",
	},
	{
		Key:  "creel.proxy.hadoop-key-files",
		Type: List,
		Doc: "Items SUBCLUSTER=FILE: the file in which the subcluster's Hadoop ResourceManager stores the keys " +
			"of its AMs' tokens, FSRMStateRoot/AMRMTokenSecretManagerRoot/AMRMTokenSecretManagerNode under its " +
			"yarn.resourcemanager.fs.state-store.uri. The proxy then authenticates these AMs itself; other AMs " +
			"log in at their ResourceManager through it.",
	},
	{Key: "creel.proxy.inbox", Type: Int, Default: "64", Doc: "Events that may wait for one attempt."},
}

var creelRebalancerKeys = []Setting{
	{Key: "creel.rebalancer.interval", Type: Duration, Default: "10s", Doc: "The time between two plans."},
	{
		Key:     "creel.rebalancer.lease",
		Type:    Duration,
		Default: "15s",
		Doc:     "How long a leader leads without renewing its lease.",
	},
	{
		Key:     "creel.rebalancer.max-change",
		Type:    Percent,
		Default: "10",
		Doc: "The most by which one plan changes a subcluster's part of a queue's maximum. If a subcluster is " +
			"lost or has lost a fifth of its resources, the change is made at once.",
	},
	{
		Key:     "creel.rebalancer.slow-start",
		Type:    Duration,
		Default: "2m",
		Doc: "How long a subcluster that is new, was away or has gained many nodes takes to count with its full " +
			"size in balanced homes and splits: first with a tenth, then linearly more. 0: with its full size at " +
			"once. During this time after the first plan all subclusters count in full.",
	},
	{
		Key:     "creel.rebalancer.capacities",
		Type:    Bool,
		Default: "true",
		Doc: "Whether a queue gets its share of the plan in each ResourceManager before others exceed theirs. " +
			"The plan replaces configured capacities while its lease lasts, if the federation's queue tree has a " +
			"guarantee or a weight for some queue. Agents set it at Hadoop's ResourceManagers, if their queues " +
			"can be changed by calls.",
	},
	{
		Key:     "creel.escrow.lease",
		Type:    Duration,
		Default: "15s",
		Doc:     "How long a subcluster holds its part of a queue's federation-wide maximum without renewing it.",
	},
	{
		Key:     "creel.escrow.linger",
		Type:    Duration,
		Default: "10m",
		Doc: "How long that part counts after its lease, because containers of a disconnected subcluster " +
			"keep running.",
	},
	{
		Key:     "creel.escrow.interval",
		Type:    Duration,
		Default: "500ms",
		Doc:     "How often a ResourceManager compares its queues' needs with their parts of federation-wide maxima.",
	},
	{
		Key:     "creel.escrow.recovery",
		Type:    Duration,
		Default: "1m",
		Doc: "How long after a restart a part is not lowered, and queues with a part do not grow: until all " +
			"nodes have reported their containers.",
	},
	{
		Key:     "creel.rebalancer.mend",
		Type:    Bool,
		Default: "false",
		Doc: "Whether routers repair drift of members' queues from the federation's queue tree automatically, " +
			"once two checks a minute apart find the same drift. They do what `creel queue mend` does, as " +
			"creel.router.proxy-user.",
	},
	{
		Key:     "creel.rebalancer.move.loaded",
		Type:    Bool,
		Default: "false",
		Doc: "Whether routers move waiting applications from loaded subclusters to others with free capacity. " +
			"Drains with --mode move do so in any case. Applications with a granted container are never moved.",
	},
	{
		Key:     "creel.rebalancer.move.per-minute",
		Type:    Int,
		Default: "60",
		Doc:     "The most applications moved in a minute, in the whole federation.",
	},
	{
		Key:     "creel.rebalancer.move.queue-percent",
		Type:    Percent,
		Default: "20",
		Doc: "The largest part of a queue's waiting applications in a loaded subcluster that is moved in a " +
			"minute.",
	},
	{
		Key:     "creel.rebalancer.move.dead-band",
		Type:    Percent,
		Default: "20",
		Doc: "How much higher a subcluster's utilization must be than another's for applications to be moved " +
			"there, in percent of its size.",
	},
	{
		Key:     "creel.rebalancer.move.again-after",
		Type:    Duration,
		Default: "10m",
		Doc:     "How long an application is not moved again.",
	},
	{
		Key:     "creel.rebalancer.audit.interval",
		Type:    Duration,
		Default: "0",
		Doc: "How often the leading rebalancer checks the federation's invariants against the members' reports. " +
			"Results are the metrics creel_invariant_checked_total and creel_invariant_broken_total, a log line " +
			"for each violation, and `creel rebalancer audit`. 0: no checks.",
	},
	{
		Key:     "creel.rebalancer.audit.within",
		Type:    Duration,
		Default: "5m",
		Doc: "How long a queue may be below its guarantee or entitlement, or needed capacity may be idle, before " +
			"an audit counts a violation.",
	},
	{
		Key:     "creel.rebalancer.dry-run",
		Type:    Bool,
		Default: "false",
		Doc:     "Whether plans are only shown, not applied.",
	},
}

var creelDaemonKeys = []Setting{
	{
		Key:     "creel.ipc.server.max-connections",
		Type:    Int,
		Default: "50000",
		Doc:     "Connections of one RPC port when ipc.server.max.connections is 0.",
	},
	{
		Key:     "creel.ipc.server.max-connections-per-address",
		Type:    Int,
		Default: "0",
		Doc:     "Connections of one remote address to a port; 0: no separate limit.",
	},
	{
		Key:     "creel.ipc.server.max-calls-per-connection",
		Type:    Int,
		Default: "4096",
		Doc:     "Calls in flight on one connection.",
	},
	{
		Key:     "creel.ipc.server.max-request-memory",
		Type:    Bytes,
		Default: "1g",
		Doc:     "Bytes of incomplete and running requests on one port, above 1 KiB each; one address may use half.",
	},
	{
		Key:     "creel.ipc.server.max-reply-bytes",
		Type:    Bytes,
		Default: "16m",
		Doc:     "Bytes of unsent answers on one connection whose client does not read.",
	},
	{
		Key:     "creel.ipc.server.max-reply-memory",
		Type:    Bytes,
		Default: "1g",
		Doc:     "Bytes of unsent answers on all connections of a port.",
	},
	{
		Key:     "creel.ipc.server.handshake-timeout",
		Type:    Duration,
		Default: "20s",
		Doc:     "How long the handshake of a connection may take.",
	},
	{
		Key:     "creel.ipc.server.stall-timeout",
		Type:    Duration,
		Default: "60s",
		Doc:     "A connection that accepts no byte of its answers for this time is closed.",
	},
	{
		Key:     "creel.http.max-request-size",
		Type:    Bytes,
		Default: "8m",
		Doc:     "The largest body of an HTTP request.",
	},
	{
		Key:     "creel.http.max-connections",
		Type:    Int,
		Default: "20000",
		Doc:     "Connections of one web port; further ones are answered 503.",
	},
	{
		Key:     "creel.http.max-connections-per-address",
		Type:    Int,
		Default: "0",
		Doc:     "Connections of one remote address to a web port; 0: half of creel.http.max-connections.",
	},
	{
		Key:     "creel.http.read-header-timeout",
		Type:    Duration,
		Default: "10s",
		Doc:     "How long a web client may take to send its headers.",
	},
	{
		Key:  "creel.http.tls.certificate",
		Type: Path,
		Doc: "The PEM file with the certificate of the web port, and those of its signers, for " +
			"yarn.http.policy=HTTPS_ONLY. It has precedence over ssl.server.keystore.location. A changed file is read again.",
	},
	{
		Key:  "creel.http.tls.key",
		Type: Path,
		Doc:  "The PEM file with the key of creel.http.tls.certificate, without a password.",
	},
	{
		Key:     "creel.http.tls.hsts-max-age",
		Type:    Duration,
		Default: "365d",
		Doc: "For how long browsers use TLS only for this host, on all its ports (Strict-Transport-Security), " +
			"with yarn.http.policy=HTTPS_ONLY; 0: no such header.",
	},
	{
		Key:     "creel.drain-timeout",
		Type:    Duration,
		Default: "10s",
		Doc:     "How long calls in flight may take to finish after the first signal.",
	},
	{
		Key:     "creel.log.level",
		Type:    Enum,
		Default: "info",
		Choices: []string{"debug", "info", "warn", "error"},
		Doc:     "The lowest level that is logged. Warnings and errors of one kind are written once in 10 s, with their number in `lines`; audit lines are all written.",
	},
	{
		Key:     "creel.log.format",
		Type:    Enum,
		Default: "auto",
		Choices: []string{"auto", "text", "json"},
		Doc:     "The log's format; auto is text on a terminal, JSON elsewhere.",
	},
	{
		Key:     "creel.log.audit",
		Type:    Enum,
		Default: "creel",
		Choices: []string{"creel", "hadoop"},
		Doc: "The format of audit lines: that of all other lines, or that of Hadoop's RMAuditLogger (USER=… IP=… " +
			"OPERATION=…), for programs that parse it.",
	},
	{
		Key:     "creel.health.address",
		Type:    Address,
		Default: "127.0.0.1:0",
		Doc: "Where a proxy, a rebalancer or simulated nodes serve /healthz, /readyz and /metrics. Port 0 is a " +
			"free port, which the ready file contains. ResourceManagers and routers serve them on their web " +
			"ports.",
	},
	{Key: "creel.debug.address", Type: Address, Doc: "Loopback address of /debug/pprof; empty: not served."},
	{
		Key:  "creel.trace.endpoint",
		Type: URL,
		Doc: "Where OpenTelemetry traces are sent, by OTLP over HTTP. Empty: the value of " +
			"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or OTEL_EXPORTER_OTLP_ENDPOINT, otherwise nowhere.",
	},
	{
		Key:     "creel.trace.sample",
		Type:    Float,
		Default: "0.01",
		Doc:     "The share of requests traced if the caller does not decide.",
	},
}
