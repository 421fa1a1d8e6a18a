// SPDX-License-Identifier: Apache-2.0

package settings

import "time"

// sections is the registry, in the order of the reference page.
var sections = []section{
	{"Hadoop: identity and files", hadoopKeys},
	{"Hadoop RPC", ipcKeys},
	{"HTTP", httpKeys},
	{"ResourceManager: addresses", rmAddressKeys},
	{"ResourceManager: nodes, AMs and containers", rmLifeKeys},
	{"ResourceManager: tokens, access and state", rmSecurityKeys},
	{"Scheduler", schedulerKeys},
	{"FairScheduler", fairKeys},
	{"Preemption", preemptionKeys},
	{"NodeManager", nmKeys},
	{"AM-RM proxy", proxyKeys},
	{"Router", routerKeys},
	{"Federation", federationKeys},
	{"Clients", clientKeys},
	{"creel: store and membership", creelStoreKeys},
	{"creel: ResourceManager", creelRMKeys},
	{"creel: nodes", creelNodeKeys},
	{"creel: router", creelRouterKeys},
	{"creel: proxy", creelProxyKeys},
	{"creel: rebalancer", creelRebalancerKeys},
	{"creel: RPC, HTTP and daemons", creelDaemonKeys},
}

// deprecated maps Hadoop's former names of keys to the current names.
var deprecated = map[string]string{
	"fs.default.name": "fs.defaultFS",
	"yarn.resourcemanager.system-metrics-publisher.enabled": "yarn.system-metrics-publisher.enabled",
	"yarn.resourcemanager.zk-acl":                           "hadoop.zk.acl",
	"yarn.resourcemanager.zk-auth":                          "hadoop.zk.auth",
	"yarn.resourcemanager.zk-address":                       "hadoop.zk.address",
	"yarn.resourcemanager.zk-num-retries":                   "hadoop.zk.num-retries",
	"yarn.resourcemanager.zk-timeout-ms":                    "hadoop.zk.timeout-ms",
	"yarn.resourcemanager.zk-retry-interval-ms":             "hadoop.zk.retry-interval-ms",
	"yarn.resourcemanager.display.per-user-apps":            "yarn.webapp.filter-entity-list-by-user",
	"yarn.resourcemanager.am.max-retries":                   "yarn.resourcemanager.am.max-attempts",
	"yarn.client.max-nodemanagers-proxies":                  "yarn.client.max-cached-nodemanagers-proxies",
	"yarn.client.app-submission.poll-interval":              "yarn.client.application-client-protocol.poll-interval-ms",
	"hadoop.http.rmwebapp.scheduler.page.class":             "yarn.http.rmwebapp.scheduler.page.class",
	"yarn.router.interceptor.user.threadpool-size":          "yarn.router.interceptor.user-thread-pool.maximum-pool-size",
}

const seconds = time.Second

var hadoopKeys = []Setting{
	{
		Key:     "fs.defaultFS",
		Type:    URL,
		Default: "file:///",
		Doc: "The file system of Hadoop's clients and NodeManagers. The ResourceManager obtains tokens of it with " +
			"yarn.resourcemanager.proxy-user-privileges.enabled.",
	},
	{
		Key:     "hadoop.tmp.dir",
		Type:    Path,
		Default: "/tmp/hadoop-${user.name}",
		Doc:     "The base of other temporary directories.",
	},
	{
		Key:     "hadoop.security.authentication",
		Type:    Enum,
		Default: "simple",
		Choices: []string{"simple", "kerberos"},
		Doc: "How RPC clients authenticate. With kerberos ResourceManagers, routers and AM-RM proxies accept tickets and " +
			"tokens alone; agents and simulated nodes refuse to start.",
	},
	{
		Key:     "hadoop.security.authorization",
		Type:    Bool,
		Default: "false",
		Doc:     "Whether the access lists of protocols (hadoop-policy.xml) are checked.",
	},
	{
		Key:     "security.service.authorization.default.acl",
		Type:    ACL,
		Default: "*",
		Doc:     "Users and groups that may use a protocol without a list of its own.",
	},
	{
		Key:     "security.service.authorization.default.acl.blocked",
		Type:    ACL,
		Default: "",
		Doc:     "Users and groups that may not use a protocol without such a list of its own.",
	},
	{
		Key:     "security.service.authorization.default.hosts",
		Type:    List,
		Default: "*",
		Doc: "Client machines that may use a protocol without a list of its own: addresses, networks in CIDR " +
			"form, host names; * is any.",
	},
	{
		Key:     "security.service.authorization.default.hosts.blocked",
		Type:    List,
		Default: "",
		Doc:     "Client machines that may not use a protocol without such a list of its own.",
	},
	{
		Key:  "security.**.protocol.acl",
		Type: ACL,
		Doc: "Users and groups that may use a protocol: applicationclient, applicationmaster, distributedscheduling, " +
			"resourcetracker, resourcemanager-administration, ha.service, and applicationmaster-nodemanager.applicationmaster at " +
			"the proxy.",
	},
	{
		Key:  "security.**.protocol.acl.blocked",
		Type: ACL,
		Doc:  "Users and groups that may not use a protocol; overrides the previous list.",
	},
	{
		Key:  "security.**.protocol.hosts",
		Type: List,
		Doc:  "Client machines that may use a protocol.",
	},
	{
		Key:  "security.**.protocol.hosts.blocked",
		Type: List,
		Doc:  "Client machines that may not use a protocol; overrides the previous list.",
	},
	{
		Key:     "hadoop.security.instrumentation.requires.admin",
		Type:    Bool,
		Default: "false",
		Doc:     "Whether /conf, /jmx and /stacks are for yarn.admin.acl only.",
	},
	{
		Key:  sensitiveKeys,
		Type: String,
		Default: "secret$,password$,ssl.keystore.pass$,fs.s3a.*.server-side-encryption.key,fs.s3a.encryption.algorithm," +
			"fs.s3a.encryption.key,fs.s3a.*.secret.key,fs.s3a.*.session.key,fs.s3a.*.session.token,fs.azure.account.key.*," +
			"fs.azure.oauth2.*,fs.adl.oauth2.*,fs.gs.encryption.*,fs.gs.proxy.*,fs.gs.auth.*,credential$,oauth.*secret," +
			"oauth.*password,oauth.*token",
		Doc: "Regular expressions, separated by commas or line ends: /conf and `creel config` mask the values of keys in " +
			"which one is found. Values of keys that end in secret, password, passphrase, credential or .auth are always masked.",
	},
	{
		Key:  "hadoop.security.credential.provider.path",
		Type: List,
		Doc: "Keystores with passwords, made by `hadoop credential create`, as jceks://file/PATH or localjceks://file/PATH. " +
			"Their aliases creel.store.password and creel.store.sentinel-password precede the password files.",
	},
	{
		Key:     "hadoop.security.credential.clear-text-fallback",
		Type:    Bool,
		Default: "true",
		Doc:     "Whether creel.store.url may contain a password.",
	},
	{
		Key:  "hadoop.security.credstore.java-keystore-provider.password-file",
		Type: Path,
		Doc: "A file with the password of the keystores. A relative path is beside the file that sets it. The environment " +
			"variable HADOOP_CREDSTORE_PASSWORD takes precedence; without both the password is none.",
	},
	{
		Key:     "hadoop.rpc.protection",
		Type:    List,
		Default: "authentication",
		Doc: "Protection of RPC after a login, the preferred one first: authentication, integrity or privacy. With simple " +
			"authentication a daemon with a list without authentication refuses to start.",
	},
	{
		Key:     "hadoop.security.token.service.use_ip",
		Type:    Bool,
		Default: "true",
		Doc:     "Whether a token names its service by address rather than by host name.",
	},
	{
		Key:  "hadoop.security.auth_to_local",
		Type: String,
		Doc: "Rules that map login names such as alice@REALM to users; unset, the user is the first component, or with " +
			"Kerberos the rule is DEFAULT. DEFAULT accepts the default_realm of KRB5_CONFIG or /etc/krb5.conf. " +
			"A daemon with rules that it cannot read refuses to start.",
	},
	{
		Key:     "hadoop.security.auth_to_local.mechanism",
		Type:    Enum,
		Choices: []string{"hadoop", "mit"},
		Default: "hadoop",
		Doc:     "hadoop: a name without a rule, or with a result that has @ or /, is rejected; mit: it is a user.",
	},
	{
		Key:     "hadoop.security.group.mapping",
		Type:    Class,
		Default: "org.apache.hadoop.security.JniBasedUnixGroupsMappingWithFallback",
		Doc: "How a user's groups are found: by this machine with every Unix mapping, by LDAP with " +
			"LdapGroupsMapping, not at all with NullGroupsMapping.",
	},
	{
		Key:     "hadoop.security.groups.cache.secs",
		Type:    Duration,
		Unit:    seconds,
		Default: "300",
		Doc: "How long a user's groups are cached. While lookups fail they are used for ten times as long, " +
			"and for a minute at least.",
	},
	{
		Key:     "hadoop.security.groups.negative-cache.secs",
		Type:    Duration,
		Unit:    seconds,
		Default: "30",
		Doc:     "How long it is cached that a user has no groups; 0: it is not.",
	},
	{
		Key:     "hadoop.security.groups.cache.warn.after.ms",
		Type:    Duration,
		Default: "5000",
		Doc:     "A lookup of groups that takes longer is logged.",
	},
	{
		Key:  "hadoop.security.group.mapping.ldap.url",
		Type: List,
		Doc:  "The LDAP servers, ldap://HOST:PORT or ldaps://HOST:PORT. After failures the next one is called.",
	},
	{
		Key:     "hadoop.security.group.mapping.ldap.ssl",
		Type:    Bool,
		Default: "false",
		Doc:     "Whether servers of ldap:// are called with TLS; their default port is then 636.",
	},
	{
		Key:  "hadoop.security.group.mapping.ldap.ssl.truststore",
		Type: Path,
		Doc:  "The certificates that verify the LDAP servers: JKS, PKCS12 or PEM. Empty: those of this machine.",
	},
	{
		Key:    "hadoop.security.group.mapping.ldap.ssl.truststore.password",
		Type:   String,
		Doc:    "The password of the truststore. A credential provider has it under the same name.",
		Secret: true,
	},
	{
		Key:  "hadoop.security.group.mapping.ldap.ssl.truststore.password.file",
		Type: Path,
		Doc:  "A file with the password of the truststore.",
	},
	{
		Key:  "hadoop.security.group.mapping.ldap.ssl.keystore",
		Type: Path,
		Doc:  "A keystore with the client's certificate, JKS or PKCS12, for LDAP servers that ask for one.",
	},
	{
		Key:    "hadoop.security.group.mapping.ldap.ssl.keystore.password",
		Type:   String,
		Doc:    "The password of the keystore. A credential provider has it under the same name.",
		Secret: true,
	},
	{
		Key:  "hadoop.security.group.mapping.ldap.ssl.keystore.password.file",
		Type: Path,
		Doc:  "A file with the password of the keystore.",
	},
	{
		Key:  "hadoop.security.group.mapping.ldap.bind.user",
		Type: String,
		Doc:  "The DN that logs in at LDAP servers; empty: an anonymous login.",
	},
	{
		Key:    "hadoop.security.group.mapping.ldap.bind.password",
		Type:   String,
		Doc:    "The password of this DN. A credential provider has it under the same name.",
		Secret: true,
	},
	{
		Key:  "hadoop.security.group.mapping.ldap.bind.password.alias",
		Type: String,
		Doc:  "The name of this password in a credential provider; it has precedence.",
	},
	{
		Key:  "hadoop.security.group.mapping.ldap.bind.password.file",
		Type: Path,
		Doc:  "A file with this password. It is read at the start.",
	},
	{
		Key:  "hadoop.security.group.mapping.ldap.base",
		Type: String,
		Doc:  "The DN below which users and groups are.",
	},
	{
		Key:     "hadoop.security.group.mapping.ldap.userbase",
		Type:    String,
		Default: "${hadoop.security.group.mapping.ldap.base}",
		Doc:     "The DN below which users are.",
	},
	{
		Key:     "hadoop.security.group.mapping.ldap.groupbase",
		Type:    String,
		Default: "${hadoop.security.group.mapping.ldap.base}",
		Doc:     "The DN below which groups are.",
	},
	{
		Key:     "hadoop.security.group.mapping.ldap.search.filter.user",
		Type:    String,
		Default: "(&(objectClass=user)(sAMAccountName={0}))",
		Doc:     "The filter that finds a user: {0} is its short name. A user with several entries has no groups.",
	},
	{
		Key:     "hadoop.security.group.mapping.ldap.search.filter.group",
		Type:    String,
		Default: "(objectClass=group)",
		Doc: "The filter of groups. With posixGroup here and posixAccount in the users' filter, users have " +
			"groups by their numbers.",
	},
	{
		Key:     "hadoop.security.group.mapping.ldap.search.attr.member",
		Type:    String,
		Default: "member",
		Doc: "The attribute of a group with its members' DNs; with posixGroup, with the users' " +
			"ldap.posix.attr.uid.name.",
	},
	{
		Key:     "hadoop.security.group.mapping.ldap.search.attr.group.name",
		Type:    String,
		Default: "cn",
		Doc:     "The attribute of a group with its name.",
	},
	{
		Key:  "hadoop.security.group.mapping.ldap.search.attr.memberof",
		Type: String,
		Doc: "The attribute of a user with its groups' DNs, which saves a search; empty: groups are searched by " +
			"their members.",
	},
	{
		Key:     "hadoop.security.group.mapping.ldap.search.group.hierarchy.levels",
		Type:    Int,
		Default: "0",
		Doc:     "How many levels of groups around a user's groups count.",
	},
	{
		Key:     "hadoop.security.group.mapping.ldap.posix.attr.uid.name",
		Type:    String,
		Default: "uidNumber",
		Doc:     "The attribute of a posixAccount that posixGroups list.",
	},
	{
		Key:     "hadoop.security.group.mapping.ldap.posix.attr.gid.name",
		Type:    String,
		Default: "gidNumber",
		Doc:     "The attribute of a posixAccount, and of a posixGroup, with the number of the group.",
	},
	{
		Key:     "hadoop.security.group.mapping.ldap.directory.search.timeout",
		Type:    Duration,
		Default: "10000",
		Doc:     "The timeout of a search, at the LDAP server.",
	},
	{
		Key:     "hadoop.security.group.mapping.ldap.connection.timeout.ms",
		Type:    Duration,
		Default: "60000",
		Doc:     "The timeout of a connection to an LDAP server.",
	},
	{
		Key:     "hadoop.security.group.mapping.ldap.read.timeout.ms",
		Type:    Duration,
		Default: "60000",
		Doc:     "How long an answer of an LDAP server may take.",
	},
	{
		Key:     "hadoop.security.group.mapping.ldap.num.attempts",
		Type:    Int,
		Default: "3",
		Doc:     "The attempts of one lookup.",
	},
	{
		Key:     "hadoop.security.group.mapping.ldap.num.attempts.before.failover",
		Type:    Int,
		Default: "3",
		Doc:     "The attempts at one LDAP server, before lookups use the next one.",
	},
	{
		Key:     "hadoop.user.group.static.mapping.overrides",
		Type:    String,
		Default: "dr.who=;",
		Doc:     "Groups of users without a lookup: user=group1,group2;user2=group3.",
	},
	{
		Key:  "dfs.namenode.kerberos.principal",
		Type: String,
		Doc: "The principal of HDFS's NameNodes, such as nn/_HOST@EXAMPLE.ORG. With Kerberos the ResourceManager renews the HDFS " +
			"tokens of applications there, and cancels them at their end. Empty: it does not.",
	},
	{
		Key:  "mapreduce.jobhistory.principal",
		Type: String,
		Doc: "The principal of MapReduce's history server, such as jhs/_HOST@EXAMPLE.ORG. With Kerberos the ResourceManager " +
			"renews and cancels the history server's tokens of applications there. Empty: it does not.",
	},
	{Key: "dfs.ha.namenodes.*", Type: List, Doc: "The ids of a nameservice's NameNodes, for the renewal of its tokens."},
	{Key: "dfs.namenode.rpc-address.*.*", Type: String, Doc: "The host:port of a nameservice's NameNode of an id."},
	{
		Key:  "hadoop.proxyuser.*.hosts",
		Type: String,
		Doc:  "Hosts from which this user may impersonate others; * is any.",
	},
	{
		Key:  "hadoop.proxyuser.*.groups",
		Type: String,
		Doc:  "Groups whose members this user may impersonate; * is any.",
	},
	{Key: "hadoop.proxyuser.*.users", Type: String, Doc: "Users that this user may impersonate; * is any."},
	{
		Key:  "net.topology.script.file.name",
		Type: Path,
		Doc:  "A program that prints the rack of each host in its arguments.",
	},
	{Key: "net.topology.table.file.name", Type: Path, Doc: "A file of two columns, host and rack."},
	{
		Key:     "net.topology.node.switch.mapping.impl",
		Type:    Class,
		Default: "org.apache.hadoop.net.ScriptBasedMapping",
		Doc:     "How racks are found: by script or, with TableMapping, from the table.",
	},
	{
		Key:     "net.topology.script.number.args",
		Type:    Int,
		Default: "100",
		Doc:     "How many hosts are passed to one call of the topology script.",
	},
}

var ipcKeys = []Setting{
	{
		Key:     "ipc.maximum.data.length",
		Type:    Int,
		Default: "134217728",
		Doc:     "Bytes of the largest request that is read; a larger one closes the connection.",
	},
	{
		Key:     "ipc.maximum.response.length",
		Type:    Int,
		Default: "134217728",
		Doc:     "Bytes of the largest answer that a client reads.",
	},
	{
		Key:     "ipc.server.max.connections",
		Type:    Int,
		Default: "0",
		Doc:     "Connections of one port; 0 means creel.ipc.server.max-connections.",
	},
	{
		Key:     "ipc.server.handler.queue.size",
		Type:    Int,
		Default: "100",
		Doc: "Calls that may wait per handler thread. Times the thread count it is the number of calls in " +
			"flight of a port.",
	},
	{
		Key:     "ipc.client.idlethreshold",
		Type:    Int,
		Default: "4000",
		Doc:     "Number of connections of a port from which on idle ones are closed.",
	},
	{
		Key:     "ipc.client.connection.maxidletime",
		Type:    Duration,
		Default: "10000",
		Doc:     "Idle time after which a client closes a connection; a server closes it after twice that.",
	},
	{
		Key:     "ipc.client.connect.timeout",
		Type:    Duration,
		Default: "20000",
		Doc:     "How long one attempt to connect may take.",
	},
	{
		Key:     "ipc.client.connect.max.retries",
		Type:    Int,
		Default: "10",
		Doc:     "Further attempts after a refused connection.",
	},
	{
		Key:     "ipc.client.connect.max.retries.on.timeouts",
		Type:    Int,
		Default: "45",
		Doc:     "Further attempts after a connection that timed out.",
	},
	{
		Key:     "ipc.client.connect.retry.interval",
		Type:    Duration,
		Default: "1000",
		Doc:     "The pause between attempts to connect.",
	},
	{
		Key:     "ipc.client.rpc-timeout.ms",
		Type:    Duration,
		Default: "120000",
		Doc:     "How long a client waits for an answer; 0 waits for ever.",
	},
	{Key: "ipc.client.ping", Type: Bool, Default: "true", Doc: "Whether a waiting client pings the server."},
	{Key: "ipc.ping.interval", Type: Duration, Default: "60000", Doc: "The time between such pings."},
	{
		Key:     "ipc.client.fallback-to-simple-auth-allowed",
		Type:    Bool,
		Default: "false",
		Doc:     "Whether a secure client may use an insecure server.",
	},
}

var httpKeys = []Setting{
	{
		Key:     "yarn.http.policy",
		Type:    Enum,
		Default: "HTTP_ONLY",
		Choices: []string{"HTTP_ONLY", "HTTPS_ONLY"},
		Doc: "Whether web ports use TLS. With HTTPS_ONLY daemons need a certificate; ResourceManagers and routers listen " +
			"at their webapp.https.address only.",
	},
	{
		Key:  "ssl.server.keystore.location",
		Type: Path,
		Doc: "The keystore, JKS or PKCS12, with the key of the web port, for yarn.http.policy=HTTPS_ONLY. " +
			"A changed file is read again.",
	},
	{
		Key:  "ssl.server.keystore.password",
		Type: String,
		Doc:  "The password of ssl.server.keystore.location, if hadoop.security.credential.provider.path has none.",
	},
	{
		Key:  "ssl.server.keystore.keypassword",
		Type: String,
		Doc:  "The password of the key in ssl.server.keystore.location of type JKS; unset: that of the keystore.",
	},
	{
		Key:     "ssl.server.keystore.type",
		Type:    String,
		Default: "jks",
		Doc:     "The type of ssl.server.keystore.location, jks or pkcs12. The content decides; other types stop the start.",
	},
	{
		Key:  "ssl.server.exclude.cipher.list",
		Type: List,
		Doc:  "Ciphers of TLS 1.2 that the web port must not use. It uses none without forward secrecy and an AEAD.",
	},
	{
		Key:     "hadoop.ssl.require.client.cert",
		Type:    Bool,
		Default: "false",
		Doc: "Whether web ports with TLS serve only clients that show a certificate of a signer in " +
			"ssl.server.truststore.location. /livez and /readyz need none. Routers and agents show that of " +
			"ssl.client.keystore.location.",
	},
	{
		Key:  "ssl.server.truststore.location",
		Type: Path,
		Doc: "The truststore (JKS, PKCS12 or PEM) with the signers of clients, for hadoop.ssl.require.client.cert. " +
			"A changed file is read again.",
	},
	{
		Key:  "ssl.server.truststore.password",
		Type: String,
		Doc:  "The password of ssl.server.truststore.location, if hadoop.security.credential.provider.path has none.",
	},
	{
		Key:     "ssl.server.truststore.type",
		Type:    String,
		Default: "jks",
		Doc:     "The type of ssl.server.truststore.location. The content decides.",
	},
	{
		Key:  "ssl.client.keystore.location",
		Type: Path,
		Doc: "The keystore, JKS or PKCS12, with the certificate that a daemon shows at other daemons' web ports if " +
			"hadoop.ssl.require.client.cert is true. A changed file is read again.",
	},
	{
		Key:  "ssl.client.keystore.password",
		Type: String,
		Doc:  "The password of ssl.client.keystore.location, if hadoop.security.credential.provider.path has none.",
	},
	{
		Key:  "ssl.client.keystore.keypassword",
		Type: String,
		Doc:  "The password of the key in ssl.client.keystore.location of type JKS; unset: that of the keystore.",
	},
	{
		Key:     "ssl.client.keystore.type",
		Type:    String,
		Default: "jks",
		Doc:     "The type of ssl.client.keystore.location. The content decides.",
	},
	{
		Key:  "ssl.client.truststore.location",
		Type: Path,
		Doc: "The truststore (JKS, PKCS12 or PEM) with the signers of other daemons' web ports; unset: the machine's " +
			"signers. A changed file is read again.",
	},
	{
		Key:  "ssl.client.truststore.password",
		Type: String,
		Doc:  "The password of ssl.client.truststore.location, if hadoop.security.credential.provider.path has none.",
	},
	{
		Key:     "ssl.client.truststore.type",
		Type:    String,
		Default: "jks",
		Doc:     "The type of ssl.client.truststore.location. The content decides.",
	},
	{
		Key:     "hadoop.http.staticuser.user",
		Type:    String,
		Default: "dr.who",
		Doc:     "The user that a web request without a name acts as.",
	},
	{
		Key:     "hadoop.http.authentication.type",
		Type:    Enum,
		Default: "simple",
		Choices: []string{"simple", "kerberos"},
		Doc: "How web clients authenticate: simple reads user.name; kerberos needs tickets, and " +
			"hadoop.security.authentication=kerberos. In a federation with Kerberos, members and routers need it.",
	},
	{
		Key:  "hadoop.http.authentication.signature.secret.file",
		Type: Path,
		Doc: "File with the secret that signs cookies of web clients with tickets, the same for all daemons that share " +
			"them. Empty: a random secret, so that cookies end with the process.",
	},
	{
		Key:     "hadoop.http.authentication.token.validity",
		Type:    Duration,
		Unit:    seconds,
		Default: "36000",
		Doc:     "Time for which a web client's cookie replaces its ticket.",
	},
	{
		Key:  "hadoop.http.authentication.cookie.domain",
		Type: String,
		Doc:  "Domain in which browsers send the cookie. Empty: to the host that set it.",
	},
	{
		Key:  "hadoop.http.authentication.kerberos.endpoint.whitelist",
		Type: List,
		Doc: "Paths that web clients with kerberos read without a ticket, as hadoop.http.staticuser.user, for example " +
			"/metrics for Prometheus.",
	},
	{
		Key:  "hadoop.http.authentication.kerberos.principal",
		Type: String,
		Doc: "Principal of the web port of a router, an AM-RM proxy or a rebalancer, HTTP/_HOST@REALM. _HOST is the host " +
			"in yarn.router.webapp.address, else the name of the machine.",
	},
	{
		Key:  "hadoop.http.authentication.kerberos.keytab",
		Type: Path,
		Doc:  "Keytab with the keys of hadoop.http.authentication.kerberos.principal.",
	},
	{
		Key:  "yarn.resourcemanager.webapp.spnego-principal",
		Type: String,
		Doc:  "Principal of the web port, HTTP/_HOST@REALM. _HOST is the host in yarn.resourcemanager.webapp.address.",
	},
	{
		Key:  "yarn.resourcemanager.webapp.spnego-keytab-file",
		Type: Path,
		Doc:  "Keytab with the keys of yarn.resourcemanager.webapp.spnego-principal.",
	},
	{
		Key:     "yarn.resourcemanager.webapp.rest-csrf.enabled",
		Type:    Bool,
		Default: "false",
		Doc: "Whether browsers must send a header with changes. Writes from pages of other sites are rejected without it " +
			"too, and pages of the ResourceManager need no header.",
	},
	{
		Key:     "yarn.resourcemanager.webapp.rest-csrf.custom-header",
		Type:    String,
		Default: "X-XSRF-Header",
		Doc:     "The name of that header.",
	},
	{
		Key:     "yarn.resourcemanager.webapp.rest-csrf.methods-to-ignore",
		Type:    List,
		Default: "GET,OPTIONS,HEAD",
		Doc:     "Methods that need no such header.",
	},
	{
		Key:     "yarn.resourcemanager.webapp.rest-csrf.browser-useragents-regex",
		Type:    List,
		Default: "^Mozilla.*,^Opera.*",
		Doc:     "Regular expressions of the User-Agent of browsers. Other clients need no such header.",
	},
	{
		Key:     "hadoop.http.authentication.simple.anonymous.allowed",
		Type:    Bool,
		Default: "true",
		Doc:     "Whether web requests without a user are allowed.",
	},
	{
		Key:     "hadoop.http.idle_timeout.ms",
		Type:    Duration,
		Default: "60000",
		Doc:     "Idle time after which a web connection is closed.",
	},
	{
		Key:     "hadoop.http.cross-origin.enabled",
		Type:    Bool,
		Default: "false",
		Doc: "Whether pages of other origins may read the REST APIs. Unlike in Hadoop, " +
			"hadoop.http.filter.initializers need not list the filter.",
	},
	{
		Key:     "yarn.resourcemanager.webapp.cross-origin.enabled",
		Type:    Bool,
		Default: "false",
		Doc:     "Whether pages of other origins may read the ResourceManager's REST API.",
	},
	{
		Key:     "yarn.router.webapp.cross-origin.enabled",
		Type:    Bool,
		Default: "false",
		Doc:     "Whether pages of other origins may read the router's REST API.",
	},
	{Key: "hadoop.http.cross-origin.allowed-origins", Type: List, Default: "*", Doc: "Allowed origins."},
	{
		Key:     "hadoop.http.cross-origin.allowed-methods",
		Type:    List,
		Default: "GET,POST,HEAD",
		Doc:     "Methods allowed to pages of other origins.",
	},
	{
		Key:     "hadoop.http.cross-origin.allowed-headers",
		Type:    List,
		Default: "X-Requested-With,Content-Type,Accept,Origin",
		Doc:     "Headers allowed to pages of other origins.",
	},
	{
		Key:     "hadoop.http.cross-origin.max-age",
		Type:    Duration,
		Unit:    seconds,
		Default: "1800",
		Doc:     "How long a browser caches the permission.",
	},
	{
		Key:     "yarn.webapp.enable-rest-app-submissions",
		Type:    Bool,
		Default: "true",
		Doc:     "Whether applications may be submitted over REST.",
	},
	{
		Key:     "yarn.webapp.filter-entity-list-by-user",
		Type:    Bool,
		Default: "false",
		Doc: "Whether lists of applications, routers' too, include only those that the user may view " +
			"(yarn.acl.enable).",
	},
	{
		Key:     "yarn.webapp.filter-invalid-xml-chars",
		Type:    Bool,
		Default: "false",
		Doc:     "Whether characters that XML cannot represent are dropped from answers.",
	},
}

var rmAddressKeys = []Setting{
	{
		Key:     "yarn.resourcemanager.hostname",
		Type:    String,
		Default: "127.0.0.1",
		Doc: "The host of the ResourceManager's addresses. YARN's default is 0.0.0.0; creel listens on " +
			"loopback unless configured otherwise.",
	},
	{
		Key:  "yarn.resourcemanager.bind-host",
		Type: String,
		Doc:  "The host to listen on if it differs from the one in the addresses; 0.0.0.0 is every interface.",
	},
	{
		Key:     "yarn.resourcemanager.address",
		Type:    Address,
		Default: "${yarn.resourcemanager.hostname}:8032",
		Doc:     "Where clients reach the ResourceManager.",
	},
	{
		Key:     "yarn.resourcemanager.scheduler.address",
		Type:    Address,
		Default: "${yarn.resourcemanager.hostname}:8030",
		Doc:     "Where application masters reach the scheduler.",
	},
	{
		Key:     "yarn.resourcemanager.resource-tracker.address",
		Type:    Address,
		Default: "${yarn.resourcemanager.hostname}:8031",
		Doc:     "Where NodeManagers report.",
	},
	{
		Key:     "yarn.resourcemanager.admin.address",
		Type:    Address,
		Default: "${yarn.resourcemanager.hostname}:8033",
		Doc:     "Where administrators reach the ResourceManager.",
	},
	{
		Key:     "yarn.resourcemanager.webapp.address",
		Type:    Address,
		Default: "${yarn.resourcemanager.hostname}:8088",
		Doc:     "The ResourceManager's web address: REST, metrics, health.",
	},
	{
		Key:     "yarn.resourcemanager.webapp.https.address",
		Type:    Address,
		Default: "${yarn.resourcemanager.hostname}:8090",
		Doc:     "The ResourceManager's web address over TLS.",
	},
	{
		Key:  "yarn.web-proxy.address",
		Type: Address,
		Doc: "The web proxy in tracking URLs; empty: the ResourceManager's web address. Set a router's address " +
			"if users can reach only routers; it serves AMs' pages too.",
	},
	{
		Key:     "yarn.resourcemanager.ha.enabled",
		Type:    Bool,
		Default: "false",
		Doc: "Whether several ResourceManagers form an HA pair. An agent uses it to find Hadoop's. A pair of creel's " +
			"needs its state in ZooKeeper (yarn.resourcemanager.store.class) or Redis (creel.rm.state.url).",
	},
	{
		Key:  "yarn.resourcemanager.ha.rm-ids",
		Type: List,
		Doc:  "The names of a pair's ResourceManagers, two or more.",
	},
	{
		Key: "yarn.resourcemanager.ha.id", Type: String,
		Doc: "The name of this ResourceManager within its pair. By default it is the name whose " +
			"yarn.resourcemanager.address is of this host.",
	},
	{
		Key: "yarn.resourcemanager.ha.automatic-failover.enabled", Type: Bool, Default: "true",
		Doc: "Whether a standby becomes active by itself when the lease of the active one ends. Otherwise " +
			"yarn rmadmin -transitionToActive makes it active.",
	},
	{
		Key:  "yarn.resourcemanager.hostname.*",
		Type: String,
		Doc:  "The host of one of a pair, if one of its addresses below is not set.",
	},
	{Key: "yarn.resourcemanager.address.*", Type: Address, Doc: "The client address of one of a pair."},
	{Key: "yarn.resourcemanager.scheduler.address.*", Type: Address, Doc: "The AMs' address of one of a pair."},
	{
		Key:  "yarn.resourcemanager.resource-tracker.address.*",
		Type: Address,
		Doc:  "The nodes' address of one of a pair.",
	},
	{Key: "yarn.resourcemanager.admin.address.*", Type: Address, Doc: "The administrators' address of one of a pair."},
	{Key: "yarn.resourcemanager.webapp.address.*", Type: Address, Doc: "The web address of one of a pair."},
	{Key: "yarn.resourcemanager.webapp.https.address.*", Type: Address, Doc: "The TLS web address of one of a pair."},
	{
		Key:     "yarn.resourcemanager.client.thread-count",
		Type:    Int,
		Default: "50",
		Doc:     "Times ipc.server.handler.queue.size: client calls in flight.",
	},
	{
		Key:     "yarn.resourcemanager.scheduler.client.thread-count",
		Type:    Int,
		Default: "50",
		Doc:     "Times ipc.server.handler.queue.size: AMs' calls in flight.",
	},
	{
		Key:     "yarn.resourcemanager.resource-tracker.client.thread-count",
		Type:    Int,
		Default: "50",
		Doc:     "Times ipc.server.handler.queue.size: nodes' calls in flight.",
	},
	{
		Key:     "yarn.resourcemanager.admin.client.thread-count",
		Type:    Int,
		Default: "1",
		Doc:     "Times ipc.server.handler.queue.size: administrators' calls in flight.",
	},
	{
		Key:     "yarn.resourcemanager.amlauncher.thread-count",
		Type:    Int,
		Default: "50",
		Doc:     "AMs that are started at the same time.",
	},
	{
		Key:     "yarn.resourcemanager.nodemanager-connect-retries",
		Type:    Int,
		Default: "10",
		Doc:     "Attempts to reach the node on which an AM is to start.",
	},
}

var rmLifeKeys = []Setting{
	{
		Key:     "yarn.am.liveness-monitor.expiry-interval-ms",
		Type:    Duration,
		Default: "900000",
		Doc:     "An AM without a heartbeat for this time is lost.",
	},
	{
		Key:     "yarn.nm.liveness-monitor.expiry-interval-ms",
		Type:    Duration,
		Default: "600000",
		Doc:     "A node without a heartbeat for this time is lost.",
	},
	{
		Key:     "yarn.resourcemanager.rm.container-allocation.expiry-interval-ms",
		Type:    Duration,
		Default: "600000",
		Doc:     "A container granted but not started for this time expires.",
	},
	{
		Key:     "yarn.resourcemanager.container.liveness-monitor.interval-ms",
		Type:    Duration,
		Default: "600000",
		Doc:     "YARN's interval between checks for expiry; creel expires containers when they are due.",
	},
	{
		Key:     "yarn.resourcemanager.am.max-attempts",
		Type:    Int,
		Default: "2",
		Doc:     "Attempts of an application that requests no other number.",
	},
	{
		Key:  "yarn.resourcemanager.am.global.max-attempts",
		Type: Int,
		Doc:  "The most attempts that an application may request; empty: yarn.resourcemanager.am.max-attempts.",
	},
	{
		Key:     "yarn.resourcemanager.max-completed-applications",
		Type:    Int,
		Default: "1000",
		Doc:     "How many ended applications are remembered.",
	},
	{
		Key:     "yarn.resourcemanager.state-store.max-completed-applications",
		Type:    Int,
		Default: "${yarn.resourcemanager.max-completed-applications}",
		Doc:     "How many ended applications survive a restart, the latest ones.",
	},
	{
		Key:     "yarn.resourcemanager.application-timeouts.monitor.interval-ms",
		Type:    Duration,
		Default: "3000",
		Doc:     "How late the end of an application's lifetime may be noticed.",
	},
	{
		Key:     "yarn.resourcemanager.application-tag-based-placement.force-lowercase",
		Type:    Bool,
		Default: "true",
		Doc:     "Whether the tags of submissions by REST are converted to lower case; by RPC the client does it.",
	},
	{
		Key:     "yarn.resourcemanager.application.max-tags",
		Type:    Int,
		Default: "10",
		Doc:     "The most tags of one application.",
	},
	{
		Key:     "yarn.resourcemanager.application.max-tag.length",
		Type:    Int,
		Default: "100",
		Doc:     "The most characters of one tag.",
	},
	{
		Key:     "yarn.app.attempt.diagnostics.limit.kc",
		Type:    Int,
		Default: "64",
		Doc:     "How many times 1,024 characters of an attempt's diagnostics are stored, the last ones.",
	},
	{
		Key:     "yarn.workflow-id.tag-prefix",
		Type:    String,
		Default: "workflowid:",
		Doc: "Prefix of the application tag with the workflow's name; see " +
			"yarn.scheduler.capacity.workflow-priority-mappings.",
	},
	{
		Key:     "yarn.cluster.max-application-priority",
		Type:    Int,
		Default: "0",
		Doc:     "The highest priority of an application; higher requests are lowered to it.",
	},
	{
		Key:     "yarn.resourcemanager.auto-update.containers",
		Type:    Bool,
		Default: "false",
		Doc:     "Whether a container's increase takes effect without its AM's participation.",
	},
	{
		Key:     "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms",
		Type:    Duration,
		Default: "1000",
		Doc:     "The time between a node's heartbeats.",
	},
	{
		Key:     "yarn.resourcemanager.nodemanagers.heartbeat-interval-scaling-enable",
		Type:    Bool,
		Default: "false",
		Doc:     "Whether nodes busier than the cluster send heartbeats less often, and idler ones more often.",
	},
	{
		Key:     "yarn.resourcemanager.nodemanagers.heartbeat-interval-min-ms",
		Type:    Duration,
		Default: "1000",
		Doc:     "The shortest scaled heartbeat interval.",
	},
	{
		Key:     "yarn.resourcemanager.nodemanagers.heartbeat-interval-max-ms",
		Type:    Duration,
		Default: "1000",
		Doc:     "The longest scaled heartbeat interval.",
	},
	{
		Key:     "yarn.resourcemanager.nodemanagers.heartbeat-interval-speedup-factor",
		Type:    Float,
		Default: "1.0",
		Doc:     "How strongly the interval shrinks for a node whose CPU use is below the cluster's average.",
	},
	{
		Key:     "yarn.resourcemanager.nodemanagers.heartbeat-interval-slowdown-factor",
		Type:    Float,
		Default: "1.0",
		Doc:     "How strongly the interval grows for a node whose CPU use is above the cluster's average.",
	},
	{
		Key:  "yarn.resourcemanager.nodes.include-path",
		Type: Path,
		Doc: "A file of the hosts that may register; empty: any. Its name is read again at each refresh. " +
			"One that ends in .xml has `<host><name>a, b</name></host>` elements; others have words.",
	},
	{
		Key:  "yarn.resourcemanager.nodes.exclude-path",
		Type: Path,
		Doc: "A file of the hosts to decommission, read as the include file. In XML a `<timeout>` beside a `<name>` is " +
			"in seconds, for graceful decommissioning; negative: no limit.",
	},
	{
		Key:     "yarn.resourcemanager.nodemanager-graceful-decommission-timeout-secs",
		Type:    Duration,
		Unit:    seconds,
		Default: "3600",
		Doc:     "How long a decommissioning node may take to finish its containers; negative: no limit.",
	},
	{
		Key:     "yarn.resourcemanager.decommissioning-nodes-watcher.poll-interval-secs",
		Type:    Duration,
		Unit:    seconds,
		Default: "20",
		Doc:     "How often decommissioning nodes are checked.",
	},
	{
		Key:     "yarn.resourcemanager.enable-node-untracked-without-include-path",
		Type:    Bool,
		Default: "false",
		Doc:     "Whether inactive nodes that are not excluded disappear too if there are no hosts to include.",
	},
	{
		Key:     "yarn.resourcemanager.node-removal-untracked.timeout-ms",
		Type:    Duration,
		Default: "60000",
		Doc: "How long an inactive node that is on neither host list is still shown, if there are hosts to " +
			"include.",
	},
	{
		Key:     "yarn.resourcemanager.nodemanager.minimum.version",
		Type:    String,
		Default: "NONE",
		Doc:     "The oldest NodeManager that may register; NONE: any; EqualToRM: the ResourceManager's, 3.4.2.",
	},
	{
		Key:     "yarn.resourcemanager.resource-tracker.nm.ip-hostname-check",
		Type:    Bool,
		Default: "false",
		Doc:     "Whether nodes whose name does not resolve are rejected.",
	},
	{
		Key:     "yarn.resourcemanager.opportunistic-container-allocation.enabled",
		Type:    Bool,
		Default: "false",
		Doc:     "Whether opportunistic containers are allocated; otherwise asks for them are guaranteed ones.",
	},
	{
		Key:     "yarn.resourcemanager.scheduler.oversubscription.enabled",
		Type:    Bool,
		Default: "false",
		Doc: "Whether asks for guaranteed containers get opportunistic ones on nodes that lend allocated and unused " +
			"resources, after the guaranteed pass.",
	},
	{
		Key:     "yarn.resourcemanager.overallocation.per-node-max-ratio",
		Type:    Float,
		Default: "4.0",
		Doc:     "The most that a node that lends may have of opportunistic containers, over its size.",
	},
	{
		Key:     "yarn.resourcemanager.opportunistic-container-allocation.nodes-used",
		Type:    Int,
		Default: "10",
		Doc:     "How many of the least loaded nodes get opportunistic containers of asks without a place.",
	},
	{
		Key:     "yarn.resourcemanager.opportunistic.max.container-allocation.per.am.heartbeat",
		Type:    Int,
		Default: "-1",
		Doc:     "Opportunistic containers that one allocate call grants at most; 0 or less: no limit.",
	},
	{
		Key:     "yarn.nodemanager.distributed-scheduling.enabled",
		Type:    Bool,
		Default: "false",
		Doc: "Whether the proxy places opportunistic containers itself, and whether the ResourceManager serves " +
			"proxies and Hadoop's NodeManagers that do. A ResourceManager publishes the keys of its nodes' tokens for it.",
	},
	{
		Key:     "yarn.resourcemanager.nm-container-queuing.sorting-nodes-interval-ms",
		Type:    Duration,
		Default: "1s",
		Doc:     "How often nodes are sorted by load, and the limit of their queues is computed.",
	},
	{
		Key:     "yarn.resourcemanager.nm-container-queuing.load-comparator",
		Type:    Enum,
		Default: "QUEUE_LENGTH",
		Choices: []string{"QUEUE_LENGTH", "QUEUE_WAIT_TIME", "QUEUE_LENGTH_THEN_RESOURCES"},
		Doc:     "The load by which nodes are sorted for opportunistic containers.",
	},
	{
		Key:     "yarn.resourcemanager.nm-container-queuing.queue-limit-stdev",
		Type:    Float,
		Default: "1.0",
		Doc:     "Standard deviations above the mean load at which the queues of nodes are cut.",
	},
	{
		Key:     "yarn.resourcemanager.nm-container-queuing.min-queue-length",
		Type:    Int,
		Default: "5",
		Doc:     "The least limit of a node's queue, in containers.",
	},
	{
		Key:     "yarn.resourcemanager.nm-container-queuing.max-queue-length",
		Type:    Int,
		Default: "15",
		Doc:     "The largest limit of a node's queue, in containers.",
	},
	{
		Key:     "yarn.resourcemanager.nm-container-queuing.min-queue-wait-time-ms",
		Type:    Int,
		Default: "10",
		Doc:     "The least limit of a node's queue, in ms of wait, with QUEUE_WAIT_TIME.",
	},
	{
		Key:     "yarn.resourcemanager.nm-container-queuing.max-queue-wait-time-ms",
		Type:    Int,
		Default: "100",
		Doc:     "The largest limit of a node's queue, in ms of wait, with QUEUE_WAIT_TIME.",
	},
	{
		Key:     "yarn.resourcemanager.placement-constraints.handler",
		Type:    Enum,
		Default: "disabled",
		Choices: []string{"disabled", "scheduler", "placement-processor"},
		Doc:     "Which component places scheduling requests with constraints.",
	},
	{
		Key:     "yarn.resourcemanager.placement-constraints.retry-attempts",
		Type:    Int,
		Default: "3",
		Doc: "The number of an AM's calls after which the placement-processor rejects requests that it " +
			"cannot place.",
	},
	{
		Key:  "yarn.resourcemanager.placement-constraints.algorithm.class",
		Type: Class,
		Doc:  "How Hadoop's placement-processor chooses nodes.",
	},
	{
		Key:     "yarn.resourcemanager.placement-constraints.algorithm.iterator",
		Type:    Enum,
		Default: "SERIAL",
		Choices: []string{"SERIAL", "POPULAR_TAGS"},
		Doc: "In which order the placement-processor handles the requests of one call: as listed, or popular " +
			"tags first.",
	},
	{
		Key:  "yarn.resourcemanager.placement-constraints.algorithm.pool-size",
		Type: Int,
		Doc:  "Threads of Hadoop's placement-processor that choose nodes.",
	},
	{
		Key:  "yarn.resourcemanager.placement-constraints.scheduler.pool-size",
		Type: Int,
		Doc:  "Threads of Hadoop's placement-processor that allocate containers.",
	},
	{
		Key:     "yarn.resourcemanager.reservation-system.enable",
		Type:    Bool,
		Default: "false",
		Doc:     "Whether reservations are supported.",
	},
	{
		Key:     "yarn.resourcemanager.resource-profiles.enabled",
		Type:    Bool,
		Default: "false",
		Doc:     "Whether asks may name a resource profile.",
	},
	{Key: "yarn.node-labels.enabled", Type: Bool, Default: "false", Doc: "Whether node labels are supported."},
	{
		Key:     "yarn.node-labels.configuration-type",
		Type:    Enum,
		Default: "centralized",
		Choices: []string{"centralized", "distributed", "delegated-centralized"},
		Doc:     "The source of nodes' labels: administrators' calls, the nodes themselves, or a provider.",
	},
	{
		Key:  "yarn.resourcemanager.node-labels.am.default-node-label-expression",
		Type: String,
		Doc:  "The label of AMs whose submission has none.",
	},
	{
		Key:     "yarn.resourcemanager.node-labels.am.allow-non-exclusive-allocation",
		Type:    Bool,
		Default: "false",
		Doc:     "Whether AMs may run on nodes that a non-exclusive label shares.",
	},
	{Key: "yarn.node-labels.fs-store.root-dir", Type: String, Doc: "Where Hadoop keeps labels."},
	{Key: "yarn.node-labels.fs-store.impl.class", Type: Class, Doc: "How Hadoop keeps labels."},
	{Key: "yarn.node-attribute.fs-store.root-dir", Type: String, Doc: "Where Hadoop keeps node attributes."},
	{Key: "yarn.node-attribute.fs-store.impl.class", Type: Class, Doc: "How Hadoop keeps node attributes."},
	{
		Key:     "yarn.resourcemanager.proxy.timeout.enabled",
		Type:    Bool,
		Default: "true",
		Doc:     "Whether the web proxy's requests to AMs time out.",
	},
	{
		Key:     "yarn.resourcemanager.proxy.connection.timeout",
		Type:    Duration,
		Default: "60000",
		Doc:     "The timeout of the web proxy's requests to AMs.",
	},
}

var rmSecurityKeys = []Setting{
	{
		Key:  "yarn.resourcemanager.principal",
		Type: String,
		Doc: "The Kerberos principal of the ResourceManager, such as rm/_HOST@EXAMPLE.ORG. _HOST stands for the host of " +
			"yarn.resourcemanager.address.",
	},
	{
		Key:     "yarn.resourcemanager.keytab",
		Type:    Path,
		Default: "/etc/krb5.keytab",
		Doc:     "The file with the keys of the principal. It is read at the start.",
	},
	{
		Key:  "yarn.nodemanager.principal",
		Type: String,
		Doc: "The Kerberos principal of NodeManagers, such as nm/_HOST@EXAMPLE.ORG. A secure ResourceManager rejects all " +
			"others. _HOST stands for a host with the node's address. An AM-RM proxy logs in at members by it, as a part of " +
			"its node; _HOST is then the name of its machine.",
	},
	{
		Key:     "yarn.nodemanager.keytab",
		Type:    Path,
		Default: "/etc/krb5.keytab",
		Doc:     "The file with the keys of yarn.nodemanager.principal, for an AM-RM proxy. It is read at the start.",
	},
	{
		Key:  "yarn.router.kerberos.principal",
		Type: String,
		Doc: "The Kerberos principal of a router, such as router/_HOST@EXAMPLE.ORG. _HOST stands for the host of " +
			"yarn.router.kerberos.principal.hostname, else of yarn.router.clientrm.address. Clients name it as " +
			"yarn.resourcemanager.principal. Its short name is the router's user at members.",
	},
	{
		Key:  "yarn.router.kerberos.principal.hostname",
		Type: String,
		Doc:  "The host for which _HOST stands in yarn.router.kerberos.principal.",
	},
	{
		Key:     "yarn.router.keytab.file",
		Type:    Path,
		Default: "/etc/krb5.keytab",
		Doc:     "The file with the keys of yarn.router.kerberos.principal. It is read at the start.",
	},
	{
		Key:     "yarn.acl.enable",
		Type:    Bool,
		Default: "false",
		Doc:     "Whether access lists of queues and applications are checked.",
	},
	{
		Key:     "yarn.admin.acl",
		Type:    ACL,
		Default: "*",
		Doc:     "Users and groups that are administrators: users, a space, groups.",
	},
	{
		Key:     "yarn.resourcemanager.am-rm-tokens.master-key-rolling-interval-secs",
		Type:    Duration,
		Unit:    seconds,
		Default: "86400",
		Doc:     "How often the key of AMs' tokens changes; more than twice the AMs' expiry.",
	},
	{
		Key:     "yarn.resourcemanager.container-tokens.master-key-rolling-interval-secs",
		Type:    Duration,
		Unit:    seconds,
		Default: "86400",
		Doc:     "How often the key of container tokens changes.",
	},
	{
		Key:     "yarn.resourcemanager.nm-tokens.master-key-rolling-interval-secs",
		Type:    Duration,
		Unit:    seconds,
		Default: "86400",
		Doc:     "How often the key of node tokens changes.",
	},
	{
		Key:     "yarn.resourcemanager.delegation.key.update-interval",
		Type:    Duration,
		Default: "86400000",
		Doc:     "How often the key of delegation tokens changes.",
	},
	{
		Key:     "yarn.resourcemanager.delegation.token.max-lifetime",
		Type:    Duration,
		Default: "604800000",
		Doc:     "The longest lifetime of a delegation token.",
	},
	{
		Key:     "yarn.resourcemanager.delayed.delegation-token.removal-interval-ms",
		Type:    Duration,
		Default: "30000",
		Doc: "How long the tokens of an ended application are valid while nodes aggregate its logs. Each node that still " +
			"does extends it. Without yarn.log-aggregation-enable they are cancelled at once.",
	},
	{
		Key:     "yarn.resourcemanager.proxy-user-privileges.enabled",
		Type:    Bool,
		Default: "false",
		Doc: "Whether the ResourceManager obtains new HDFS tokens for applications whose tokens cannot be renewed any more, " +
			"and for those without any of fs.defaultFS. NodeManagers get them with heartbeats. The NameNode must let the " +
			"ResourceManager act for users: hadoop.proxyuser.* there.",
	},
	{
		Key:     "yarn.resourcemanager.delegation.token.renew-interval",
		Type:    Duration,
		Default: "86400000",
		Doc:     "The lifetime of a delegation token without a renewal.",
	},
	{
		Key:     "yarn.resourcemanager.delegation.token.remove-scan-interval",
		Type:    Duration,
		Default: "1h",
		Doc:     "How often expired delegation tokens are removed.",
	},
	{
		Key:     "yarn.resourcemanager.recovery.enabled",
		Type:    Bool,
		Default: "false",
		Doc: "Whether state survives a restart. true requires creel.rm.data (--data), creel.rm.state.url, or a " +
			"ZooKeeper by yarn.resourcemanager.store.class; with a directory state always survives.",
	},
	{
		Key:  "yarn.resourcemanager.store.class",
		Type: Class,
		Doc: "org.apache.hadoop.yarn.server.resourcemanager.recovery.ZKRMStateStore keeps the state in the ZooKeeper of " +
			"hadoop.zk.address, if yarn.resourcemanager.recovery.enabled is true and creel.rm.state.url is not set. " +
			"Neither implementation starts on the other's state, unless creel.rm.state.hadoop-records is set: creel rm " +
			"import and export convert it. With Hadoop's other stores the state is in creel.rm.data.",
	},
	{
		Key:     "yarn.resourcemanager.zk-state-store.parent-path",
		Type:    String,
		Default: "/rmstore",
		Doc: "The path in ZooKeeper below which the state is. Each ResourceManager, or pair, needs its own; another " +
			"name's state is refused.",
	},
	{
		Key:     "yarn.resourcemanager.zk-max-znode-size.bytes",
		Type:    Bytes,
		Default: "1048576",
		Doc:     "The size of a node in ZooKeeper, at most; creel's never exceed 512 KiB. Larger changes are several nodes.",
	},
	{
		Key:     "yarn.resourcemanager.ha.automatic-failover.zk-base-path",
		Type:    String,
		Default: "/yarn-leader-election",
		Doc: "The path in ZooKeeper below which a pair elects its active ResourceManager, under " +
			"yarn.resourcemanager.cluster-id, as Hadoop's elector does.",
	},
	{
		Key:  "hadoop.zk.address",
		Type: List,
		Doc: "The ZooKeeper servers of the ResourceManager's state and, by yarn.federation.state-store.class, of the store: " +
			"host:port with commas. Names are resolved at each connection.",
	},
	{
		Key:     "hadoop.zk.timeout-ms",
		Type:    Duration,
		Default: "10000",
		Doc: "The time after which ZooKeeper ends the session of a silent ResourceManager; with a pair, the standby then " +
			"takes over. The active one answers nothing after two thirds of it.",
	},
	{
		Key:     "hadoop.zk.acl",
		Type:    String,
		Default: "world:anyone:rwcda",
		Doc:     "The rights at nodes in ZooKeeper, scheme:id:rights with commas, or @FILE. Creating and deleting below the root needs the fence too.",
	},
	{
		Key:  "hadoop.zk.auth",
		Type: String,
		Doc:  "The login at ZooKeeper, digest:USER:PASSWORD with commas, or @FILE.",
	},
	{
		Key:     "hadoop.zk.ssl.enabled",
		Type:    Bool,
		Default: "false",
		Doc: "Whether connections to ZooKeeper use TLS, of the ResourceManager's state, its elector and the store. The " +
			"addresses then have the servers' secureClientPort, and a certificate must have the name of its server.",
	},
	{
		Key:     "yarn.resourcemanager.zk-client-ssl.enabled",
		Type:    Bool,
		Default: "false",
		Doc:     "true is hadoop.zk.ssl.enabled=true.",
	},
	{
		Key:  "hadoop.zk.ssl.keystore.location",
		Type: Path,
		Doc: "The keystore (JKS or PKCS12) with the certificate that ZooKeeper's servers ask for; unset: none. A changed " +
			"file is read again.",
	},
	{
		Key:  "hadoop.zk.ssl.keystore.password",
		Type: String,
		Doc:  "The password of hadoop.zk.ssl.keystore.location, if hadoop.security.credential.provider.path has none.",
	},
	{
		Key:  "hadoop.zk.ssl.truststore.location",
		Type: Path,
		Doc: "The truststore (JKS, PKCS12 or PEM) with the signers of ZooKeeper's servers; unset: the machine's signers. A " +
			"changed file is read again.",
	},
	{
		Key:  "hadoop.zk.ssl.truststore.password",
		Type: String,
		Doc:  "The password of hadoop.zk.ssl.truststore.location, if hadoop.security.credential.provider.path has none.",
	},
	{
		Key:  "hadoop.zk.kerberos.principal",
		Type: String,
		Doc: "The principal that logs in at ZooKeeper, with hadoop.zk.kerberos.keytab; unset: no login by Kerberos. _HOST is " +
			"the name of this machine.",
	},
	{
		Key:  "hadoop.zk.kerberos.keytab",
		Type: Path,
		Doc:  "The keytab of hadoop.zk.kerberos.principal.",
	},
	{
		Key:  "hadoop.zk.server.principal",
		Type: String,
		Doc: "The principal of ZooKeeper's servers: a name, or zookeeper/_HOST@REALM. _HOST is the name in the server's " +
			"address. Unset: zookeeper, with that name, in the realm of hadoop.zk.kerberos.principal.",
	},
	{
		Key:     "yarn.resourcemanager.work-preserving-recovery.enabled",
		Type:    Bool,
		Default: "true",
		Doc:     "Whether containers keep running over a restart.",
	},
	{
		Key:     "yarn.resourcemanager.work-preserving-recovery.scheduling-wait-ms",
		Type:    Duration,
		Default: "10000",
		Doc:     "How long after a restart nodes may report before new containers are granted.",
	},
	{
		Key:  "yarn.resourcemanager.cluster-id",
		Type: String,
		Doc:  "The name of this cluster; in a federation, the subcluster's id.",
	},
	{
		Key:     "yarn.resourcemanager.epoch",
		Type:    Long,
		Default: "0",
		Doc:     "The first epoch of container ids; 0: a unique one in a federation, otherwise 0.",
	},
	{
		Key:     "yarn.resourcemanager.epoch.range",
		Type:    Long,
		Default: "0",
		Doc:     "How many epochs this ResourceManager may use before it starts over; 0: no limit.",
	},
	{
		Key:     "yarn.log-aggregation-enable",
		Type:    Bool,
		Default: "false",
		Doc: "Whether nodes aggregate the logs of ended applications. They report their progress, which " +
			"applications show. Nodes need the setting as well.",
	},
	{
		Key:     "yarn.log-aggregation-status.time-out.ms",
		Type:    Duration,
		Default: "10m",
		Doc: "How long after an application's end its nodes may take to report aggregated logs; then their " +
			"status is TIME_OUT. 0 or less is 10 minutes.",
	},
	{
		Key:     "yarn.resourcemanager.max-log-aggregation-diagnostics-in-memory",
		Type:    Int,
		Default: "10",
		Doc: "How many of a node's messages about an application's logs are stored, and as many of failures, " +
			"up to 1,024 bytes each.",
	},
	{Key: "yarn.log.server.url", Type: URL, Doc: "The server that shows aggregated logs."},
}

var schedulerKeys = []Setting{
	{
		Key:     "yarn.resourcemanager.scheduler.class",
		Type:    Class,
		Default: "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler",
		Doc: "The scheduler, and the format of its queue file: CapacityScheduler reads " +
			"capacity-scheduler.xml, FairScheduler the allocation file. A ResourceManager with any other class " +
			"refuses to start.",
	},
	{
		Key:     "yarn.scheduler.minimum-allocation-mb",
		Type:    Int,
		Default: "1024",
		Doc:     "The smallest container, and the step of memory sizes, in MiB.",
	},
	{Key: "yarn.scheduler.maximum-allocation-mb", Type: Int, Default: "8192", Doc: "The largest container in MiB."},
	{
		Key:     "yarn.scheduler.minimum-allocation-vcores",
		Type:    Int,
		Default: "1",
		Doc:     "The smallest container in virtual cores.",
	},
	{
		Key:     "yarn.scheduler.maximum-allocation-vcores",
		Type:    Int,
		Default: "4",
		Doc:     "The largest container in virtual cores.",
	},
	{
		Key:     "yarn.scheduler.include-port-in-node-name",
		Type:    Bool,
		Default: "false",
		Doc:     "Whether asks name nodes as host:port; for several nodes on one host.",
	},
	{
		Key:     "yarn.scheduler.queue-placement-rules",
		Type:    List,
		Default: "user-group",
		Doc:     "The rules that choose the queue of a submission: user-group, app-name, or classes.",
	},
	{
		Key:  "yarn.scheduler.queue-placement-rules.app-name",
		Type: List,
		Doc: "Queues of applications by name: application:queue; applied after " +
			"yarn.scheduler.capacity.queue-mappings.",
	},
	{
		Key:     "yarn.scheduler.configuration.store.class",
		Type:    Enum,
		Default: "file",
		Choices: []string{"file", "memory", "leveldb", "zk", "fs"},
		Doc: "Where CapacityScheduler's queues are stored: file (capacity-scheduler.xml; no changes by " +
			"calls), memory (changes by calls last until the next start), fs (changes by calls are stored in the " +
			"journal, creel.rm.data). A ResourceManager with leveldb or zk refuses to start.",
	},
	{
		Key:     "yarn.scheduler.configuration.store.max-logs",
		Type:    Int,
		Default: "1000",
		Doc:     "How many changes of the queues by calls are stored, to be undone.",
	},
	{
		Key:     "yarn.scheduler.configuration.mutation.acl-policy.class",
		Type:    String,
		Default: "org.apache.hadoop.yarn.server.resourcemanager.scheduler.DefaultConfigurationMutationACLPolicy",
		Doc: "Which users may change queues by calls: administrators only, or with " +
			"QueueAdminConfigurationMutationACLPolicy a queue's administrators too. A ResourceManager with any " +
			"other class refuses to start.",
	},
	{
		Key:  "yarn.resource-types",
		Type: List,
		Doc:  "Resource types in addition to memory and cores, such as yarn.io/gpu.",
	},
	{
		Key:  "yarn.resource-types.**.units",
		Type: String,
		Doc:  "The unit of a resource type, in which its bounds, queues' amounts without a unit and documents are.",
	},
	{
		Key:  "yarn.resource-types.**.minimum-allocation",
		Type: Long,
		Doc:  "The least amount of the type in a container.",
	},
	{
		Key:  "yarn.resource-types.**.maximum-allocation",
		Type: Long,
		Doc:  "The largest amount of the type in a container.",
	},
	{
		Key:  "yarn.resource-types.**.increment-allocation",
		Type: String,
		Doc:  "The step in which the FairScheduler allocates the type.",
	},
}

var fairKeys = []Setting{
	{
		Key:     "yarn.scheduler.fair.allocation.file",
		Type:    Path,
		Default: "fair-scheduler.xml",
		Doc:     "The allocation file; a relative name is looked up in the configuration directory.",
	},
	{
		Key:     "yarn.scheduler.fair.user-as-default-queue",
		Type:    Bool,
		Default: "true",
		Doc:     "Whether a submission without a queue goes to the user's own queue.",
	},
	{
		Key:     "yarn.scheduler.fair.allow-undeclared-pools",
		Type:    Bool,
		Default: "true",
		Doc:     "Whether submissions may create queues that are not in the file.",
	},
	{
		Key:     "yarn.scheduler.fair.sizebasedweight",
		Type:    Bool,
		Default: "false",
		Doc:     "Whether a large application weighs more than a small one.",
	},
	{
		Key:     "yarn.scheduler.fair.assignmultiple",
		Type:    Bool,
		Default: "false",
		Doc:     "Whether one pass assigns several containers to a node.",
	},
	{
		Key:     "yarn.scheduler.fair.dynamic.max.assign",
		Type:    Bool,
		Default: "true",
		Doc:     "Whether one pass assigns at most half of a node's free resources.",
	},
	{
		Key:     "yarn.scheduler.fair.max.assign",
		Type:    Int,
		Default: "-1",
		Doc:     "The most containers that one pass assigns to a node otherwise; -1: no limit.",
	},
	{
		Key:     "yarn.scheduler.fair.locality.threshold.node",
		Type:    Float,
		Default: "-1.0",
		Doc:     "Share of the cluster's nodes to skip while waiting for the requested node; negative: no wait.",
	},
	{
		Key:     "yarn.scheduler.fair.locality.threshold.rack",
		Type:    Float,
		Default: "-1.0",
		Doc:     "Share of the cluster's nodes to skip while waiting for the requested rack; negative: no wait.",
	},
	{
		Key:     "yarn.scheduler.fair.update-interval-ms",
		Type:    Duration,
		Default: "500",
		Doc:     "How often YARN computes shares; creel computes them when they change.",
	},
	{
		Key:     "yarn.scheduler.increment-allocation-mb",
		Type:    Int,
		Default: "1024",
		Doc:     "The step of memory sizes, in MiB.",
	},
	{
		Key:     "yarn.scheduler.increment-allocation-vcores",
		Type:    Int,
		Default: "1",
		Doc:     "The step of virtual cores.",
	},
}

var nmKeys = []Setting{
	{
		Key:     "yarn.nodemanager.hostname",
		Type:    String,
		Default: "127.0.0.1",
		Doc:     "The host of the NodeManager's addresses; YARN's default is 0.0.0.0.",
	},
	{
		Key:  "yarn.nodemanager.bind-host",
		Type: String,
		Doc:  "The host to listen on if it differs from the one in the addresses.",
	},
	{
		Key:     "yarn.nodemanager.address",
		Type:    Address,
		Default: "${yarn.nodemanager.hostname}:0",
		Doc:     "Where AMs start containers.",
	},
	{
		Key:     "yarn.nodemanager.webapp.address",
		Type:    Address,
		Default: "${yarn.nodemanager.hostname}:8042",
		Doc:     "The node's web address.",
	},
	{
		Key:     "yarn.nodemanager.localizer.address",
		Type:    Address,
		Default: "${yarn.nodemanager.hostname}:8040",
		Doc:     "Where localizers report.",
	},
	{
		Key:     "yarn.nodemanager.resource.memory-mb",
		Type:    Int,
		Default: "-1",
		Doc:     "Memory for containers in MiB; -1: 8192.",
	},
	{
		Key:     "yarn.nodemanager.resource.cpu-vcores",
		Type:    Int,
		Default: "-1",
		Doc:     "Virtual cores for containers; -1: 8.",
	},
	{
		Key:     "yarn.nodemanager.local-dirs",
		Type:    List,
		Default: "${hadoop.tmp.dir}/nm-local-dir",
		Doc:     "Directories for containers' files.",
	},
	{
		Key:     "yarn.nodemanager.log-dirs",
		Type:    List,
		Default: "${hadoop.tmp.dir}/userlogs",
		Doc:     "Directories for containers' logs.",
	},
	{
		Key:     "yarn.nodemanager.container-manager.thread-count",
		Type:    Int,
		Default: "20",
		Doc:     "Times ipc.server.handler.queue.size: AMs' calls in flight.",
	},
	{
		Key:     "yarn.nodemanager.sleep-delay-before-sigkill.ms",
		Type:    Duration,
		Default: "250",
		Doc:     "The time between the request to a container to end and its kill.",
	},
	{
		Key:  "yarn.nodemanager.resourcemanager.connect.max-wait.ms",
		Type: Duration,
		Doc:  "How long a node tries to reach its ResourceManager; empty: yarn.resourcemanager.connect.max-wait.ms.",
	},
	{
		Key:  "yarn.nodemanager.resourcemanager.connect.retry-interval.ms",
		Type: Duration,
		Doc:  "The pause between its attempts; empty: yarn.resourcemanager.connect.retry-interval.ms.",
	},
	{
		Key:     "yarn.nodemanager.recovery.enabled",
		Type:    Bool,
		Default: "false",
		Doc:     "Whether containers survive a restart of the node's daemon.",
	},
	{
		Key:     "yarn.nodemanager.opportunistic-containers-max-queue-length",
		Type:    Int,
		Default: "0",
		Doc:     "Opportunistic containers that may wait on a node; 0: a node starts none.",
	},
	{
		Key:     "yarn.nodemanager.opportunistic-containers-queue-policy",
		Type:    Enum,
		Default: "BY_QUEUE_LEN",
		Choices: []string{"BY_QUEUE_LEN", "BY_RESOURCES"},
		Doc: "Which opportunistic containers may wait: so many, or those that fit into the node's free resources " +
			"(the length is then 0).",
	},
	{
		Key:     "yarn.nodemanager.opportunistic-containers-use-pause-for-preemption",
		Type:    Bool,
		Default: "false",
		Doc:     "Whether guaranteed containers pause opportunistic ones instead of killing them.",
	},
	{
		Key:     "yarn.nodemanager.overallocation.general-utilization-threshold",
		Type:    Float,
		Default: "-1",
		Doc: "The part of a node's memory and vcores up to whose use opportunistic containers start on what others " +
			"have allocated, at most 0.95; 0 or less: a node lends nothing.",
	},
	{
		Key:     "yarn.nodemanager.overallocation.memory-utilization-threshold",
		Type:    Float,
		Default: "-1",
		Doc:     "The same for memory alone; below 0: the general threshold; 0: a node lends nothing.",
	},
	{
		Key:     "yarn.nodemanager.overallocation.cpu-utilization-threshold",
		Type:    Float,
		Default: "-1",
		Doc:     "The same for vcores alone; below 0: the general threshold; 0: a node lends nothing.",
	},
	{
		Key:     "yarn.nodemanager.overallocation.preemption-threshold.memory",
		Type:    Float,
		Default: "0.95",
		Doc:     "The part of a node's memory above whose use the youngest opportunistic containers end.",
	},
	{
		Key:     "yarn.nodemanager.overallocation.preemption-threshold.cpu",
		Type:    Float,
		Default: "0.99",
		Doc:     "The part of a node's vcores above whose use the youngest opportunistic containers end.",
	},
	{
		Key:     "yarn.nodemanager.overallocation.preemption-threshold-count.cpu",
		Type:    Int,
		Default: "4",
		Doc:     "Consecutive looks with too high a use of vcores that end nothing yet.",
	},
	{
		Key:     "yarn.nodemanager.container-diagnostics-maximum-size",
		Type:    Int,
		Default: "10000",
		Doc:     "Characters of diagnostics stored for a container.",
	},
}

var proxyKeys = []Setting{
	{
		Key:     "yarn.nodemanager.amrmproxy.enabled",
		Type:    Bool,
		Default: "false",
		Doc:     "Whether AMs simulated by nodes (creel run) call the proxy; creel's proxy is a separate daemon.",
	},
	{
		Key:     "yarn.nodemanager.amrmproxy.address",
		Type:    Address,
		Default: "127.0.0.1:8049",
		Doc:     "Where AMs reach the proxy; YARN's default is on 0.0.0.0.",
	},
	{
		Key:     "yarn.nodemanager.amrmproxy.client.thread-count",
		Type:    Int,
		Default: "25",
		Doc:     "Times ipc.server.handler.queue.size: AMs' calls in flight.",
	},
	{
		Key:     "yarn.federation.amrmproxy.hb.maximum.wait.ms",
		Type:    Duration,
		Default: "5s",
		Doc:     "The longest time that an allocate call waits for the home ResourceManager's answer.",
	},
	{
		Key:     "yarn.federation.amrmproxy.subcluster.timeout.ms",
		Type:    Duration,
		Default: "60000",
		Doc:     "A ResourceManager without an answer for this time gets no new asks, and its pending ones move.",
	},
	{
		Key:     "yarn.federation.amrmproxy.register.uam.retry-count",
		Type:    Int,
		Default: "3",
		Doc:     "Attempts to register an unmanaged AM.",
	},
	{
		Key:     "yarn.federation.amrmproxy.register.uam.interval",
		Type:    Duration,
		Default: "100ms",
		Doc:     "The pause between attempts to register an unmanaged AM.",
	},
}

var routerKeys = []Setting{
	{
		Key:     "yarn.router.hostname",
		Type:    String,
		Default: "127.0.0.1",
		Doc:     "The host of the router's addresses; YARN's default is 0.0.0.0.",
	},
	{
		Key:  "yarn.router.bind-host",
		Type: String,
		Doc:  "The host to listen on if it differs from the one in the addresses.",
	},
	{
		Key:     "yarn.router.clientrm.address",
		Type:    Address,
		Default: "${yarn.router.hostname}:8050",
		Doc:     "Where clients reach the router, as they would a ResourceManager.",
	},
	{
		Key:     "yarn.router.rmadmin.address",
		Type:    Address,
		Default: "${yarn.router.hostname}:8052",
		Doc:     "Where administrators reach the router.",
	},
	{
		Key:     "yarn.router.webapp.address",
		Type:    Address,
		Default: "${yarn.router.hostname}:8089",
		Doc:     "The router's web address: REST, dashboard, metrics, health.",
	},
	{
		Key:     "yarn.router.webapp.https.address",
		Type:    Address,
		Default: "${yarn.router.hostname}:8091",
		Doc:     "The router's web address over TLS.",
	},
	{
		Key:     "yarn.router.submit.retry",
		Type:    Int,
		Default: "3",
		Doc:     "Further subclusters that a submission tries after the first fails.",
	},
	{
		Key:     "yarn.router.submit.interval.time",
		Type:    Duration,
		Default: "10ms",
		Doc:     "The pause between attempts of a submission.",
	},
	{
		Key:     "yarn.router.interceptor.allow-partial-result.enable",
		Type:    Bool,
		Default: "false",
		Doc: "Whether a list by RPC is returned without a subcluster that does not answer, or rejects the call; " +
			"false: the list is an error that names it. A lost subcluster is left out in both cases. REST always " +
			"returns the list, and headers name the missing subclusters.",
	},
	{
		Key:     "yarn.router.partial-result.enabled",
		Type:    Bool,
		Default: "false",
		Doc: "Whether lists include an application that only unmanaged AMs reported, because its home does not " +
			"answer or its own report does not match the filter. Several such reports are merged into one.",
	},
	{
		Key:     "yarn.router.webapp.proxy.enable",
		Type:    Bool,
		Default: "true",
		Doc: "Whether the router serves AMs' pages, at /proxy/ID, through the web proxy of their home. Members' " +
			"yarn.web-proxy.address makes tracking URLs use it.",
	},
	{
		Key:     "yarn.router.webapp.connect-timeout",
		Type:    Duration,
		Default: "30s",
		Doc:     "How long the router waits for a connection to a ResourceManager's web address.",
	},
	{
		Key:     "yarn.router.webapp.read-timeout",
		Type:    Duration,
		Default: "30s",
		Doc:     "How long the router waits for an answer from a ResourceManager's web address.",
	},
	{
		Key:     "yarn.router.asc-interceptor-max-size",
		Type:    Bytes,
		Default: "1MB",
		Doc:     "Bytes of the largest submission that a router or a ResourceManager accepts.",
	},
	{
		Key:     "yarn.router.deregister.subcluster.enabled",
		Type:    Bool,
		Default: "true",
		Doc:     "Whether members without heartbeats for a long time are removed.",
	},
	{
		Key:     "yarn.router.subcluster.heartbeat.expiration.time",
		Type:    Duration,
		Default: "30m",
		Doc:     "The time after which such members are removed.",
	},
}

var federationKeys = []Setting{
	{
		Key:     "yarn.federation.enabled",
		Type:    Bool,
		Default: "false",
		Doc: "Whether yarn.federation.state-store.class names the store. A ResourceManager of creel's registers as a member " +
			"if it has a store.",
	},
	{
		Key:  "yarn.federation.state-store.class",
		Type: Class,
		Doc: "org.apache.hadoop.yarn.server.federation.store.impl.ZookeeperFederationStateStore sets creel.store.url to the " +
			"ZooKeeper of hadoop.zk.address, if yarn.federation.enabled is true and creel.store.url is not set, and " +
			"SQLFederationStateStore to the database of yarn.federation.state-store.sql.url.",
	},
	{
		Key:  "yarn.federation.state-store.sql.url",
		Type: String,
		Doc: "The database of SQLFederationStateStore, jdbc:mysql://HOST:PORT/DATABASE or jdbc:mariadb://HOST:PORT/DATABASE. " +
			"Parameters other than useSSL and sslMode do not count. Other databases are not supported.",
	},
	{
		Key:  "yarn.federation.state-store.sql.username",
		Type: String,
		Doc:  "The user of a store in MariaDB, if creel.store.url has none.",
	},
	{
		Key:    "yarn.federation.state-store.sql.password",
		Type:   String,
		Secret: true,
		Doc: "The password of a store in MariaDB, if there is neither the alias creel.store.password nor " +
			"creel.store.password-file. hadoop.security.credential.provider.path may have it as an alias of this name.",
	},
	{
		Key:     "yarn.federation.zk-state-store.parent-path",
		Type:    String,
		Default: "/federationstore",
		Doc:     "The path in ZooKeeper below which the federation's store is, if creel.store.url has none.",
	},
	{
		Key:     "yarn.federation.cache-ttl.secs",
		Type:    Duration,
		Unit:    seconds,
		Default: "300",
		Doc:     "The longest age of cached members and policies.",
	},
	{
		Key:     "yarn.federation.state-store.heartbeat-interval-secs",
		Type:    Duration,
		Unit:    seconds,
		Default: "300",
		Doc: "The heartbeat interval of members that Hadoop's ResourceManagers register in a store in ZooKeeper: they are " +
			"alive for three of them, at most 1h. creel's is creel.membership.heartbeat-interval.",
	},
	{
		Key:     "yarn.federation.state-store.max-applications",
		Type:    Int,
		Default: "1000",
		Doc:     "Applications that one listing of the store returns.",
	},
	{
		Key:  "yarn.federation.machine-list",
		Type: Path,
		Doc: "A file of lines: host, subcluster, rack. It overrides the hosts that members publish, and is read " +
			"again when it changes.",
	},
}

var clientKeys = []Setting{
	{
		Key:     "yarn.resourcemanager.connect.max-wait.ms",
		Type:    Duration,
		Default: "900000",
		Doc:     "How long a client tries to reach the ResourceManager; -1: for ever.",
	},
	{
		Key:     "yarn.resourcemanager.connect.retry-interval.ms",
		Type:    Duration,
		Default: "30000",
		Doc:     "The pause between a client's attempts to reach the ResourceManager.",
	},
	{
		Key:     "yarn.client.application-client-protocol.poll-interval-ms",
		Type:    Duration,
		Default: "200",
		Doc:     "How often a client polls the state of its submission.",
	},
	{
		Key:     "yarn.client.nodemanager-connect.max-wait-ms",
		Type:    Duration,
		Default: "180000",
		Doc:     "How long a client tries to reach a NodeManager to start a container.",
	},
	{
		Key:     "yarn.client.nodemanager-connect.retry-interval-ms",
		Type:    Duration,
		Default: "10000",
		Doc:     "The pause between a client's attempts to reach a NodeManager.",
	},
	{Key: "yarn.application.classpath", Type: List, Doc: "The class path that clients set for their containers."},
}
