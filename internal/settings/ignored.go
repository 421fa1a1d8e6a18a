// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/creelrm/creel/internal/nearest"
)

// Effect is how an unused key of Hadoop's affects a start, if its value asks for something. Such a value is neither
// empty nor Hadoop's default.
type Effect uint8

const (
	Lists  Effect = iota // the key appears in the one line that lists all of them
	Warns                // a separate line, with the reason
	Stops                // the daemon does not start
	Silent               // another program reads the key
)

func (e Effect) String() string { return [...]string{"is listed", "warns", "stops", "no effect"}[e] }

// ignoredRow is the effect of some keys. The first row that applies to a key and its value decides.
type ignoredRow struct {
	keys    []string // with * and ** as in Setting.Key
	effect  Effect
	roles   []Role   // nil: all servers of the keys' family
	also    []string // values beside Hadoop's default that ask for nothing more; for a list, each item
	when    func(s *Settings, value string) bool
	key     string   // for the test and the page: an example, if keys begin with a pattern
	example string   // a value for which the row applies
	with    []string // -D that the example needs
	why     string
	try     string
}

var (
	onServers = []Role{RM, Router, Proxy}
	onWeb     = []Role{RM, Router, Proxy, Rebalancer}
)

// safetyWords are parts of the names of keys about rights, secrets, TLS, identity, stores and exclusivity. A test
// requires a row for each of Hadoop's names with such a part. Other keys with such a part, unknown to Hadoop's releases
// at the time of writing, cause a warning.
var safetyWords = regexp.MustCompile(`acl|auth|kerberos|keytab|principal|secur|secret|token|cred|passw|passphrase|` +
	`ssl|tls|https|csrf|xfs|xframe|filter|imperson|proxy-?user|sasl|crypt|protection|admin|permission|privilege|` +
	`identity|store|reserv|exclu|ui-actions|zk|sensitive|cross-origin|cors|signature|whitelist|blacklist|allow|deny|` +
	`denied|strict|policy|interceptor|preprocessor|partition|provider|umask|jwt|ldap|trust|cert|sandbox`)

// ownFamilies are the families of keys that Hadoop's YARN daemons read.
var ownFamilies = []string{"yarn.", "hadoop.", "ipc.", "net.", "security."}

// ldapMapping is the -D with which the keys of LdapGroupsMapping are in force.
const ldapMapping = "hadoop.security.group.mapping=org.apache.hadoop.security.LdapGroupsMapping"

// queueKeys belong to the queue files. Their reader logs its own warnings.
var queueKeys = []string{"yarn.scheduler.capacity.", "yarn.scheduler.queue-placement-rules."}

const (
	noZooKeeper = "creel's client of ZooKeeper has no such setting: it connects again until it succeeds"
	noKerberos  = "creel does not use it: its daemons log in by principals and keytabs of their own"
	noHDFSKeys  = "creel neither reads nor writes encrypted files"
	journalHas  = "the ResourceManager's state is in its journal, creel.rm.data, or in the Redis or ZooKeeper that the settings name"
)

func isTrue(_ *Settings, value string) bool { return strings.EqualFold(value, "true") }

func isFalse(_ *Settings, value string) bool { return strings.EqualFold(value, "false") }

// withZooKeeper are settings of a state in ZooKeeper, for examples.
var withZooKeeper = []string{
	"yarn.resourcemanager.recovery.enabled=true", "yarn.resourcemanager.store.class=" + recovery + "ZKRMStateStore",
	"yarn.resourcemanager.cluster-id=c1", "hadoop.zk.address=127.0.0.1:2181",
}

// keepsInZooKeeper reports whether the ResourceManager's state is in ZooKeeper.
func keepsInZooKeeper(s *Settings) bool {
	return s.Bool("yarn.resourcemanager.recovery.enabled") && s.String("creel.rm.state.url") == "" &&
		strings.HasSuffix(s.String("yarn.resourcemanager.store.class"), ".ZKRMStateStore")
}

// recoversFromDisk reports whether the state is wanted after a restart, and is only on this machine.
func recoversFromDisk(s *Settings, _ string) bool {
	return s.Bool("yarn.resourcemanager.recovery.enabled") && s.String("creel.rm.state.url") == "" &&
		!keepsInZooKeeper(s)
}

// ignoredRows are all rows. Rows without effect on the start are last.
var ignoredRows = []ignoredRow{
	// Rights and identity.
	{
		keys: []string{"yarn.authorization-provider"}, effect: Stops, roles: []Role{RM, Router},
		also:    []string{"org.apache.hadoop.yarn.security.ConfiguredYarnAuthorizer"},
		example: "org.apache.ranger.authorization.yarn.authorizer.RangerYarnAuthorizer",
		why:     "creel cannot run this class: other users than intended could submit and administer",
		try: "remove it, and write the rights as access lists of queues and yarn.admin.acl, or ask an outside authoriser: " +
			"creel.authorizer.url",
	},
	{
		keys: []string{"hadoop.security.impersonation.provider.class"}, effect: Stops, roles: onServers,
		also:    []string{"org.apache.hadoop.security.authorize.DefaultImpersonationProvider"},
		example: "com.example.OurImpersonation",
		why:     "creel cannot run this class: other users than intended could impersonate",
		try:     "remove it, and write the rights as hadoop.proxyuser.*.hosts, .groups and .users",
	},
	{
		keys: []string{"hadoop.http.filter.initializers"}, effect: Stops, roles: onWeb,
		also: []string{
			"org.apache.hadoop.http.lib.StaticUserWebFilter",
			"org.apache.hadoop.security.HttpCrossOriginFilterInitializer",
			"org.apache.hadoop.security.AuthenticationFilterInitializer",
			"org.apache.hadoop.yarn.server.security.http.RMAuthenticationFilterInitializer",
		},
		example: "com.example.SingleSignOnFilterInitializer",
		why:     "creel cannot run this class: requests would be served unfiltered",
		try:     "remove it, and put a proxy with this filter before the web ports",
	},
	{
		keys:    []string{"yarn.router.*.interceptor-class.pipeline"},
		effect:  Stops,
		also:    routerInterceptors,
		key:     "yarn.router.clientrm.interceptor-class.pipeline",
		example: "com.example.QuotaInterceptor,org.apache.hadoop.yarn.server.router.clientrm.FederationClientInterceptor",
		why:     "creel cannot run this class: calls would pass without it",
		try:     "remove it; creel's router needs no pipeline",
	},
	{
		keys:  []string{"yarn.nodemanager.amrmproxy.interceptor-class.pipeline"},
		roles: []Role{Proxy}, effect: Stops,
		also: []string{
			"org.apache.hadoop.yarn.server.nodemanager.amrmproxy.DefaultRequestInterceptor",
			"org.apache.hadoop.yarn.server.nodemanager.amrmproxy.FederationInterceptor",
		},
		example: "com.example.QuotaInterceptor,org.apache.hadoop.yarn.server.nodemanager.amrmproxy.FederationInterceptor",
		why:     "creel cannot run this class: AMs' calls would pass without it",
		try:     "remove it; creel's proxy needs no pipeline",
	},
	{
		keys:    []string{"yarn.resourcemanager.submission-preprocessor.enabled"},
		effect:  Stops,
		when:    isTrue,
		example: "true",
		why:     "creel does not change submissions: applications could run outside of the partition that the file assigns",
		try:     "set false, and choose queues and their labels by mapping rules",
	},
	{
		keys:    []string{"yarn.node-labels.exclusive-enforced-partitions"},
		effect:  Stops,
		roles:   []Role{RM},
		example: "gpu",
		why:     "creel does not enforce it: an application could ask for containers inside and outside of the partition",
		try:     "remove it, and limit the labels that queues may access",
	},
	{
		keys:    []string{"yarn.resourcemanager.configuration.provider-class"},
		effect:  Stops,
		also:    []string{"org.apache.hadoop.yarn.LocalConfigurationProvider"},
		example: "org.apache.hadoop.yarn.FileSystemBasedConfigurationProvider",
		why:     "creel reads local files only: access lists, queues and host lists of that store would not be in force",
		try:     "remove it, and put the files into the directory of --conf",
	},
	{
		keys: []string{"security.**"}, effect: Stops, roles: onServers, key: "security.resourcetracker.protocol.acls",
		when:    func(s *Settings, _ string) bool { return s.Bool("hadoop.security.authorization") },
		with:    []string{"hadoop.security.authorization=true"},
		example: "yarn", why: "it is no access list of a protocol: it would limit no caller",
		try: "write security.NAME.protocol.acl, .acl.blocked, .hosts or .hosts.blocked",
	},
	{
		keys: []string{"security.**"}, effect: Lists,
		why: "it is no access list of a protocol, and hadoop.security.authorization is false",
	},

	// Secrets and encryption.
	{
		keys: []string{"hadoop.security.saslproperties.resolver.class"}, effect: Stops, roles: onServers,
		also:    []string{"org.apache.hadoop.security.SaslPropertiesResolver"},
		example: "org.apache.hadoop.security.IngressPortBasedResolver",
		why:     "creel cannot run this class: callers whose calls it protects would be unprotected",
		try:     "remove it, and choose one protection for all by hadoop.rpc.protection",
	},
	{
		keys: []string{"yarn.*.application-https.policy"}, effect: Stops,
		key:     "yarn.resourcemanager.application-https.policy",
		when:    func(_ *Settings, v string) bool { return !strings.EqualFold(v, "LENIENT") },
		also:    []string{"NONE"},
		example: "STRICT",
		why:     "creel makes no certificates for AMs: their pages would be served unencrypted",
		try:     "set NONE, on a network that you trust",
	},
	{
		keys: []string{"yarn.*.application-https.policy"}, effect: Warns, example: "LENIENT",
		key: "yarn.resourcemanager.application-https.policy",
		why: "creel makes no certificates for AMs: they serve their pages by HTTP",
	},
	{
		keys: []string{"yarn.intermediate-data-encryption.enable"}, effect: Stops, roles: []Role{RM}, when: isTrue,
		example: "true",
		why:     "creel's journal is not encrypted",
		try:     "set false, and put creel.rm.data on an encrypted disk",
	},
	{
		keys: []string{"hadoop.ssl.enabled"}, effect: Stops, roles: onWeb, when: isTrue, example: "true",
		why: "yarn.http.policy alone turns TLS on: answers would be unencrypted",
		try: "remove it; set yarn.http.policy to HTTPS_ONLY",
	},
	{
		keys: []string{"hadoop.ssl.server.conf"}, effect: Warns, roles: onWeb, also: []string{"ssl-server.xml"},
		example: "ssl-rm.xml", why: "creel reads ssl-server.xml of its configuration directory",
	},
	{
		keys: []string{"hadoop.ssl.client.conf"}, effect: Warns, roles: []Role{Router, Agent}, also: []string{"ssl-client.xml"},
		example: "ssl-rm.xml", why: "creel reads ssl-client.xml of its configuration directory",
	},
	{
		keys: []string{"hadoop.ssl.**", "hadoop.http.sni.**"}, effect: Lists, roles: onWeb, also: []string{"false"},
		why: "yarn.http.policy and ssl-server.xml configure TLS, of which creel uses versions 1.2 and 1.3",
	},
	{
		keys: []string{
			"yarn.resourcemanager.principal.**",
			"yarn.web-proxy.keytab", "yarn.web-proxy.principal",
			"yarn.*.webapp.spnego-keytab-file", "yarn.*.webapp.spnego-principal",
			"hadoop.kerberos.**", "hadoop.security.kerberos.**",
		},
		effect: Warns, example: "rm/_HOST@EXAMPLE.ORG", why: noKerberos,
	},
	{
		keys: []string{"hadoop.http.authentication.kerberos.**"}, effect: Warns, roles: onWeb,
		key: "hadoop.http.authentication.kerberos.name.rules", example: "DEFAULT",
		why: "creel does not use it: names of web clients follow hadoop.security.auth_to_local",
	},
	{
		keys: []string{"hadoop.http.authentication.**"}, effect: Warns, roles: onWeb, example: "zookeeper",
		key: "hadoop.http.authentication.signer.secret.provider",
		why: "creel does not use it: only hadoop.http.authentication.signature.secret.file has a secret that signs cookies",
	},
	{
		keys: []string{
			"hadoop.security.crypto.**", "hadoop.security.key.**", "hadoop.security.kms.**", "hadoop.security.java.**",
			"hadoop.security.secure.random.**", "hadoop.security.random.**", "hadoop.security.openssl.**",
		},
		effect: Lists, roles: onServers, why: noHDFSKeys,
	},
	{
		keys: []string{
			"hadoop.security.group.mapping.ldap.bind.users", "hadoop.security.group.mapping.ldap.bind.users.**",
			"hadoop.security.group.mapping.ldap.group.search.filter.pattern",
		},
		effect: Stops, roles: onServers, key: "hadoop.security.group.mapping.ldap.bind.users", example: "first,second",
		with: []string{ldapMapping, "hadoop.security.group.mapping.ldap.url=ldaps://ldap.example.org"},
		when: func(s *Settings, _ string) bool {
			return strings.HasSuffix(s.String("hadoop.security.group.mapping"), ".LdapGroupsMapping")
		},
		why: "creel logs in at LDAP servers as one user, and fills filters with the user's name or DN only",
		try: "set hadoop.security.group.mapping.ldap.bind.user and .search.filter.group",
	},
	{
		keys: []string{"hadoop.security.group.mapping.**"}, effect: Lists, roles: onServers,
		why: "no class of hadoop.security.group.mapping that creel supports uses it",
	},
	{
		keys: []string{
			"hadoop.security.groups.**", "hadoop.security.uid.**", "hadoop.security.dns.**",
			"hadoop.security.resolver.**",
			"hadoop.security.service.**", "hadoop.token.files", "hadoop.tokens", "hadoop.user.group.metrics.**",
			"hadoop.caller.context.**",
		},
		effect: Lists, roles: onServers, why: "it configures internals of Hadoop's daemons",
	},
	{
		keys: []string{"hadoop.proxyuser.**"}, effect: Warns, roles: onServers, example: "*",
		key: "hadoop.proxyuser.hue.host",
		why: "only hadoop.proxyuser.USER.hosts, .groups and .users permit impersonation",
	},
	{
		keys: []string{"hadoop.security.authorization.**"}, effect: Warns, roles: onServers, example: "true",
		key: "hadoop.security.authorization.ip.secured",
		why: "creel does not use it; access lists of protocols are security.*.protocol.acl",
	},

	// Web ports.
	{
		keys: []string{"**.rest-csrf.**"}, effect: Warns, roles: nil, also: []string{"false"}, example: "true",
		key: "hadoop.http.rest-csrf.enabled",
		why: "creel always rejects writes from pages of other sites, by their origin; only the ResourceManager can demand a header",
	},
	{
		keys: []string{"yarn.*.webapp.xfs-filter.xframe-options"}, effect: Stops, example: "DENY",
		key:  "yarn.resourcemanager.webapp.xfs-filter.xframe-options",
		when: func(_ *Settings, v string) bool { return strings.EqualFold(v, "DENY") },
		why:  "creel sends SAMEORIGIN: pages of the same host could frame its pages",
		try:  "set SAMEORIGIN",
	},
	{
		keys:    []string{"**.xfs-filter.**", "**.xframe-options"},
		effect:  Warns,
		key:     "yarn.webapp.xfs-filter.enabled",
		example: "false",
		why:     "creel always forbids pages of other sites to frame its own",
	},
	{
		keys: []string{"hadoop.http.header.**"}, effect: Warns, roles: onWeb, example: "max-age=31536000",
		key: "hadoop.http.header.Strict-Transport-Security",
		why: "creel sends its own headers; add others in a proxy before the web ports",
	},
	{
		keys: []string{"yarn.*.webapp.ui-actions.enabled"}, effect: Stops, when: isFalse, example: "false",
		key: "yarn.resourcemanager.webapp.ui-actions.enabled",
		why: "creel's pages have buttons that kill and move applications",
		try: "remove it; a button does no more than its user may do by command",
	},
	{
		keys: []string{"yarn.resourcemanager.webapp.delegation-token-auth-filter.**"}, effect: Warns, example: "false",
		why: "the ResourceManager's web port issues delegation tokens to callers with a ticket, and accepts its own as a login",
	},
	{
		keys: []string{"yarn.webapp.custom.webservice.class", "yarn.http.rmwebapp.external.classes"}, effect: Warns,
		example: "com.example.Service", why: "creel cannot run this class: its paths are not served",
	},

	// Stores.
	{
		keys: []string{"yarn.resourcemanager.zk-state-store.root-node.acl"}, effect: Stops,
		when:    func(s *Settings, _ string) bool { return keepsInZooKeeper(s) },
		example: "sasl:rm:rwcda", with: withZooKeeper,
		why: "creel sets the ACL of the root itself: it fences by it",
		try: "remove it, and set hadoop.zk.acl for all nodes",
	},
	{
		keys: []string{"yarn.resourcemanager.fs.state-store.uri"}, effect: Stops,
		when: func(s *Settings, value string) bool {
			u, err := url.Parse(value)
			return recoversFromDisk(s, value) && (err != nil || u.Scheme != "" && u.Scheme != "file")
		},
		example: "hdfs://nn:8020/rmstate",
		with:    []string{"yarn.resourcemanager.recovery.enabled=true", "creel.rm.data=/var/lib/creel"},
		why:     "creel stores its state in the journal on this machine, not there: it would not survive the machine",
		try:     "set creel.rm.state.url to a Redis, or put creel.rm.data on a volume that survives the machine",
	},
	{
		keys: []string{
			"yarn.resourcemanager.fs.state-store.**",
			"yarn.resourcemanager.leveldb-state-store.**", "yarn.fs-store.**",
			"yarn.resourcemanager.nodestore-rootdir.**",
			"yarn.resourcemanager.configuration.file-system-based-store",
		},
		effect: Lists, why: journalHas,
	},
	{
		keys: []string{
			"hadoop.zk.**", "yarn.resourcemanager.zk-state-store.**",
			"yarn.resourcemanager.zk-appid-node.**", "yarn.resourcemanager.zk-delegation-token-node.**",
			"yarn.resourcemanager.ha.automatic-failover.embedded",
			"yarn.resourcemanager.ha.curator-leader-elector.**",
			"yarn.resourcemanager.ha.failover-controller.**", "yarn.scheduler.configuration.zk-store.**",
		},
		effect: Lists, why: noZooKeeper,
	},
	{
		keys: []string{
			"yarn.federation.state-store.**", "yarn.federation.registry.**", "yarn.federation.non-ha.**",
			"yarn.federation.policy-manager", "yarn.federation.policy-manager-params",
		},
		effect: Lists, why: "creel's store is that of creel.store.url",
	},
	{
		keys: []string{
			"yarn.scheduler.configuration.leveldb-store.**", "yarn.scheduler.configuration.fs.**",
			"yarn.scheduler.configuration.max.version", "yarn.scheduler.configuration.store.max-logs",
		},
		effect: Lists, why: "changes of queues are stored in the journal, creel.rm.data",
	},

	// Reservations, placement and labels.
	{
		keys: []string{"yarn.acl.reservation-enable"}, effect: Warns, roles: []Role{RM}, example: "true",
		why: "creel rejects all reservations, so no access list of them is checked",
	},
	{
		keys: []string{"yarn.resourcemanager.reservation-system.**"}, effect: Lists,
		why: "creel rejects all reservations",
	},
	{
		keys: []string{"yarn.resourcemanager.application-tag-based-placement.**"}, effect: Warns, example: "true",
		key: "yarn.resourcemanager.application-tag-based-placement.enable",
		why: "creel places an application by its submitter, not by the user in its tags",
	},
	{
		keys: []string{"yarn.resourcemanager.application-master-service.processors"}, effect: Warns,
		example: "com.example.Processor", why: "creel cannot run this class: AMs' calls pass without it",
	},
	{
		keys: []string{"yarn.resourcemanager.submission-preprocessor.**"}, effect: Lists,
		why: "creel does not change submissions",
	},
	{
		keys:   []string{"yarn.resourcemanager.node-labels.provider", "yarn.resourcemanager.node-labels.provider.**"},
		effect: Lists,
		why:    "only yarn.node-labels.configuration-type=delegated-centralized, with which creel does not start, uses it",
	},
	{
		keys: []string{
			"yarn.resourcemanager.delegation-token-renewer.**", "yarn.resourcemanager.delegation-token.**",
		},
		effect: Lists, why: "creel renews tokens without these settings",
	},
	{
		keys:   []string{"yarn.router.interceptor.**"},
		effect: Lists,
		why:    "calls to members need no threads in creel",
	},
	{
		keys: []string{"ipc.*.identity-provider.impl", "ipc.identity-provider.impl", "ipc.cost-provider.impl",
			"ipc.*.cost-provider.impl", "ipc.*.decay-scheduler.**", "ipc.*.weighted-cost.**"},
		effect: Lists, roles: onServers, why: "creel has no call queue that schedules callers",
	},
	{
		keys: []string{"hadoop.http.jmx.**"}, effect: Lists, roles: onWeb, why: "it changes the text of numbers alone",
	},
	{
		keys: []string{"yarn.timeline-service.enabled", "yarn.system-metrics-publisher.**"}, effect: Lists,
		roles: []Role{RM}, why: "creel publishes nothing to a timeline service",
	},
	{
		keys: []string{"yarn.nodemanager.amrmproxy.**"}, effect: Lists, roles: []Role{Proxy},
		why: "creel's proxy has settings of its own, creel.proxy.*",
	},

	// Keys of other programs.
	{
		keys: []string{"yarn.nodemanager.**"}, effect: Silent,
		why: "Hadoop's NodeManagers read it; creel's are simulated, without files and processes",
	},
	{
		keys: []string{"yarn.client.**", "ipc.client.**", "yarn.app.**"}, effect: Silent,
		why: "clients and AMs read it",
	},
	{
		keys: []string{"yarn.timeline-service.**", "yarn.sharedcache.**", "yarn.service.**", "yarn.federation.gpg.**",
			"yarn.minicluster.**", "yarn.sls.**", "hadoop.registry.**", "yarn.registry.**"},
		effect: Silent, why: "other programs of Hadoop read it",
	},
}

const recovery = "org.apache.hadoop.yarn.server.resourcemanager.recovery."

// routerInterceptors are Hadoop's own interceptors. creel's router already performs their work.
var routerInterceptors = func() (names []string) {
	for _, name := range []string{
		"clientrm.DefaultClientRequestInterceptor", "clientrm.FederationClientInterceptor",
		"clientrm.PassThroughClientRequestInterceptor", "clientrm.ApplicationSubmissionContextInterceptor",
		"rmadmin.DefaultRMAdminRequestInterceptor", "rmadmin.FederationRMAdminInterceptor",
		"rmadmin.PassThroughRMAdminRequestInterceptor",
		"webapp.DefaultRequestInterceptorREST", "webapp.FederationInterceptorREST",
		"webapp.PassThroughRESTRequestInterceptor",
	} {
		names = append(names, "org.apache.hadoop.yarn.server.router."+name)
	}
	return names
}()

// applies reports whether a row covers a key.
func (r *ignoredRow) applies(key string) bool {
	return slices.ContainsFunc(r.keys, func(pattern string) bool { return matches(pattern, key) })
}

// concerns reports whether a row applies to a daemon's role.
func (r *ignoredRow) concerns(key string, role Role) bool {
	if r.roles != nil {
		return slices.Contains(r.roles, role)
	}
	return slices.Contains(onWeb, role) && concerns(key, role)
}

// asksNothing reports whether a value is empty or asks for Hadoop's default. also lists further such values.
func (s *Settings) asksNothing(v *Value, also []string) bool {
	same := func(a, b string) bool {
		return strings.EqualFold(strings.Join(strings.Fields(a), " "), strings.TrimSpace(b))
	}
	if strings.TrimSpace(v.Text) == "" {
		return true
	}
	if fallback, ok := registry().hadoop[v.Key]; ok {
		text, err := s.expand(fallback)
		if same(v.Raw, fallback) || err == nil && same(v.Text, text) {
			return true
		}
	}
	return len(also) > 0 && !slices.ContainsFunc(SplitList(v.Text), func(item string) bool {
		return !slices.ContainsFunc(also, func(other string) bool { return strings.EqualFold(item, other) })
	})
}

// passedOver is a key whose value creel ignores.
type passedOver struct {
	*Value
	ignoredRow
}

// passedOver lists the unused keys whose values ask for something, with their effect on daemons of a role; of all roles
// if it is "".
func (s *Settings) passedOver(role Role) (out []passedOver) {
	for _, key := range s.keys() {
		v := s.values[key]
		if v.Origin.Source == "default" || !startsWith(key, ownFamilies) || startsWith(key, queueKeys) {
			continue
		}
		if row, ok := Find(key); ok {
			if p, ok := s.withoutEffect(v, row, role); ok {
				out = append(out, p)
			}
			continue
		}
		for _, row := range append(slices.Clip(ignoredRows), unlisted(key)) {
			if !row.applies(key) || s.asksNothing(v, row.also) || row.when != nil && !row.when(s, v.Text) {
				continue
			}
			if row.effect != Silent && (role == "" || row.concerns(key, role)) {
				out = append(out, passedOver{v, row})
			}
			break
		}
	}
	return out
}

func startsWith(key string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

// withoutEffect lists a key of the registry whose value creel ignores, unless other programs use it.
func (s *Settings) withoutEffect(v *Value, row *Setting, role Role) (passedOver, bool) {
	r := ignoredRow{effect: Lists, why: row.Note}
	fallback, err := s.expand(row.Default)
	if row.Status != WithoutEffect || row.Note == client || row.Note == hadoopNM ||
		err == nil && strings.TrimSpace(fallback) == v.Text || role != "" && !r.concerns(v.Key, role) {
		return passedOver{}, false
	}
	return passedOver{v, r}, true
}

const didYouMean = "did you mean "

// unlisted makes the row of a key without another row. A misspelt name of a key about safety stops the start: its right
// name would be in force, or would stop the start.
func unlisted(key string) ignoredRow {
	row := ignoredRow{keys: []string{key}, why: "creel does not use it"}
	if _, ok := registry().hadoop[key]; ok {
		return row
	}
	row.why = "creel does not know it"
	near := Nearest(key)
	if near != "" {
		row.try = didYouMean + near + "?"
	}
	if near != "" && nearest.Distance(key, near, 3) < 3 {
		row.effect = Warns // a misspelt name
	}
	if !safetyWords.MatchString(strings.ToLower(key)) {
		return row
	}
	row.effect = Warns
	if near != "" && nearest.Distance(key, near, 3) < 3 && matters(near) {
		row.effect, row.why = Stops, "creel does not know it: what it limits or protects would be open"
	}
	return row
}

// matters reports whether a known key is in force, or may stop a start.
func matters(key string) bool {
	if row, ok := Find(key); ok {
		return row.Status == InForce
	}
	return slices.ContainsFunc(ignoredRows, func(r ignoredRow) bool { return r.effect == Stops && r.applies(key) })
}

// Refused returns one error for all keys that creel does not support and that a daemon of the role must not ignore.
func (s *Settings) Refused(role Role) error {
	var errs []error
	for _, p := range s.passedOver(role) {
		if p.effect == Stops {
			errs = append(errs, s.Problem(p.Key, p.why, p.try))
		}
	}
	return errors.Join(errs...)
}

// ignoredWarnings are the warnings for keys that a daemon of this role does not use. Each key with a reason gets a
// warning, and one more warning lists the others.
func (s *Settings) ignoredWarnings(role Role) (out []string) {
	var others []string
	for _, p := range s.passedOver(role) {
		hint := ""
		if p.try != "" {
			hint = "; " + p.try
		}
		switch p.effect {
		case Warns:
			out = append(out,
				fmt.Sprintf("%s: %s=%s has no effect: %s%s", p.Origin, p.Key, s.shown(p.Value), p.why, hint))
		case Lists:
			others = append(others, fmt.Sprintf("%s (%s%s)", p.Key, short(p.Origin.String()), hint))
		}
	}
	if len(others) > 0 {
		out = append(out, "creel does not use these keys (creel config explain KEY): "+strings.Join(others, ", "))
	}
	return out
}

// RefusedKey is a key that stops the start of a daemon, with an example.
type RefusedKey struct {
	Key, Example, Why, Try string
	With                   []string // -D that the refusal also needs
	Roles                  []Role
}

// RefusedKeys are the unsupported keys that must not be ignored, in the order of the page.
func RefusedKeys() (out []RefusedKey) {
	for _, row := range ignoredRows {
		if row.effect != Stops {
			continue
		}
		key := row.key
		if key == "" {
			key = row.keys[0]
		}
		k := RefusedKey{Key: key, Example: row.example, Why: row.why, Try: row.try, With: row.with}
		for _, role := range Roles {
			if row.concerns(key, role) {
				k.Roles = append(k.Roles, role)
			}
		}
		out = append(out, k)
	}
	return out
}

// explainIgnored returns the effect of a key that creel does not use.
func (s *Settings) explainIgnored(key string) string {
	for _, row := range append(slices.Clip(ignoredRows), unlisted(key)) {
		if !row.applies(key) || s.values[key] != nil && row.when != nil && !row.when(s, s.values[key].Text) {
			continue
		}
		switch row.effect {
		case Stops:
			return "a value other than Hadoop's default stops a daemon: " + row.why
		case Silent:
			return row.why
		}
		return "a value other than Hadoop's default warns at the start: " + row.why
	}
	return ""
}

// ignoredReference writes the section on these keys for the reference page.
func ignoredReference(b *strings.Builder) {
	b.WriteString("\n## Hadoop's keys that creel does not use\n\n" +
		"A value other than Hadoop's default *stops* a daemon if ignoring the key would make the cluster less safe than " +
		"its operator asked for. Otherwise it *warns* at each start with the reason, or *is listed* in the start's one " +
		"warning about such keys. The first row that applies decides. All other keys of `yarn.*`, `hadoop.*`, `ipc.*` " +
		"and `net.*` are listed. A misspelt key warns with the nearest name, and `creel config check --strict` fails for it. " +
		"An unknown key about safety warns, and stops if it resembles one that is in force.\n\n" +
		"| keys | start | |\n|---|---|---|\n")
	for _, row := range ignoredRows {
		text := row.why
		if row.try != "" {
			text += "; " + row.try
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", strings.Join(row.keys, "`, `"), row.effect, text)
	}
}

// hadoopDefaults parses hadoop-names.txt.
func hadoopDefaults() map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(hadoopNames) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			name, value, _ := strings.Cut(line, " ")
			out[name] = value
		}
	}
	return out
}

// hadoopKeyNames are the names in hadoop-names.txt, sorted.
func (t *tables) hadoopKeyNames() []string { return slices.Sorted(maps.Keys(t.hadoop)) }
