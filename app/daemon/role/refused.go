// SPDX-License-Identifier: Apache-2.0

package role

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/creelrm/creel/app/daemon/webserver"
	"github.com/creelrm/creel/internal/settings"
)

// refusal is a setting's value that prevents a daemon's start: ignoring it would weaken security, durability or
// exclusivity.
type refusal struct {
	key     string
	roles   []settings.Role
	example string   // a rejected value, for the test and the generated page
	with    []string // -D that the example needs
	why     string
	try     string
	// refused reports whether the settings have such a value. The returned reason follows why.
	refused func(s *settings.Settings) (bool, string)
}

// recoveryPackage has Hadoop's state stores.
const recoveryPackage = "org.apache.hadoop.yarn.server.resourcemanager.recovery."

// distributedScheduling is the key with which NodeManagers place opportunistic containers.
const distributedScheduling = "yarn.nodemanager.distributed-scheduling.enabled"

var (
	onRM      = []settings.Role{settings.RM}
	onNM      = []settings.Role{settings.NM}
	onServers = []settings.Role{settings.RM, settings.Router, settings.Proxy}
	onWeb     = append(slices.Clone(onServers), settings.Rebalancer) // with a web port and no other

	inFederation = []settings.Role{settings.RM, settings.Proxy, settings.Router, settings.Rebalancer, settings.Agent}
)

// is reports whether a setting of type enumeration or boolean has a value.
func is(key, value string) func(*settings.Settings) (bool, string) {
	return func(s *settings.Settings) (bool, string) {
		if row, _ := settings.Find(key); row.Type == settings.Bool {
			return s.Bool(key) == (value == "true"), ""
		}
		return s.String(key) == value, ""
	}
}

// unreadable reports whether the setting names a file that cannot be read.
func unreadable(key string) func(*settings.Settings) (bool, string) {
	return func(s *settings.Settings) (bool, string) {
		path := s.String(key)
		if path == "" {
			return false, ""
		}
		f, err := os.Open(path)
		if err != nil {
			return true, fileReason(err)
		}
		f.Close() // it was only opened for reading
		return false, ""
	}
}

// refusedIf returns the refusal of settings that a function cannot read.
func refusedIf(read func(s *settings.Settings) error) func(*settings.Settings) (bool, string) {
	return func(s *settings.Settings) (bool, string) {
		if err := read(s); err != nil {
			return true, err.Error()
		}
		return false, ""
	}
}

// incompleteLogin reports a problem of a key in the settings of a store in ZooKeeper.
func incompleteLogin(key string) func(*settings.Settings) (bool, string) {
	return func(s *settings.Settings) (bool, string) {
		if !overZooKeeper(s) {
			return false, ""
		}
		_, err := zooKeeperStore(s)
		var p *settings.Problem
		if errors.As(err, &p) && p.Key == key {
			return true, p.Why
		}
		return false, ""
	}
}

// incompleteKerberos reports what a secure daemon lacks.
func incompleteKerberos(role settings.Role) func(*settings.Settings) (bool, string) {
	return refusedIf(func(s *settings.Settings) error {
		if !secure(s) {
			return nil
		}
		c, err := secureSettings(s, role)
		switch {
		case err != nil:
			return err
		case role == settings.RM:
			_, err = c.nodes(s)
		default:
			_, err = c.ticket(s)
		}
		return err
	})
}

// incompleteWebLogin reports what a daemon lacks whose web clients shall log in by Kerberos.
func incompleteWebLogin(role settings.Role) func(*settings.Settings) (bool, string) {
	return refusedIf(func(s *settings.Settings) error {
		if !webByTicket(s) {
			return nil
		}
		if !secure(s) {
			return errors.New(authentication + " is simple")
		}
		_, err := webLogin(s, role)
		return err
	})
}

// secureFederation reports whether a daemon is a part of a federation with Kerberos.
func secureFederation(s *settings.Settings) bool { return secure(s) && Member(s) }

// Texts of several refusals.
const (
	incomplete     = "the settings of Kerberos are incomplete"
	incompleteWeb  = "the settings of the web port's login by Kerberos are incomplete"
	byKerberosPage = "set the missing keys, by docs/operations/kerberos.md"
)

// clusterSecretFile is the setting with the cluster's secret.
const clusterSecretFile = "creel.cluster.secret-file"

// refusals are all refusals, in the order of the page in docs.
var refusals = []refusal{
	{
		key: webAuthentication, roles: []settings.Role{settings.RM, settings.Router, settings.Agent}, example: "simple",
		with:    []string{authentication + "=kerberos", "creel.store.url=redis://r:6379"},
		why:     "in a federation with Kerberos, routers and clients must log in at the web port",
		try:     "set kerberos, by docs/operations/kerberos.md",
		refused: func(s *settings.Settings) (bool, string) { return secureFederation(s) && !webByTicket(s), "" },
	},
	{
		key: clusterSecretFile, roles: inFederation, example: "",
		with: []string{
			authentication + "=kerberos", webAuthentication + "=kerberos", "creel.store.url=redis://r:6379",
		},
		why: "in a federation with Kerberos, a secret in the store would let its readers forge tokens and members",
		try: "name a file of at least 16 random bytes, the same for all daemons (one that does not exist is made)",
		refused: func(s *settings.Settings) (bool, string) {
			return secureFederation(s) && s.String(clusterSecretFile) == "", ""
		},
	},
	{
		key: authentication, roles: onNM, example: "kerberos",
		why:     "this daemon does not support Kerberos: it would send bare user names",
		try:     "set simple, on a network that you trust",
		refused: is(authentication, "kerberos"),
	},
	{
		key: authentication, roles: onRM, example: "kerberos",
		why:     incomplete,
		try:     byKerberosPage,
		refused: incompleteKerberos(settings.RM),
	},
	{
		key: authentication, roles: []settings.Role{settings.Router}, example: "kerberos",
		why:     incomplete,
		try:     byKerberosPage,
		refused: incompleteKerberos(settings.Router),
	},
	{
		key: authentication, roles: []settings.Role{settings.Proxy}, example: "kerberos",
		why:     incomplete,
		try:     byKerberosPage,
		refused: incompleteKerberos(settings.Proxy),
	},
	{
		key: authentication, roles: []settings.Role{settings.Agent}, example: "kerberos",
		why:     incomplete,
		try:     byKerberosPage,
		refused: incompleteKerberos(settings.Agent),
	},
	{
		key: authToLocal, roles: onWeb, example: "RULE:[1:$1",
		why: "the rules are invalid: clients would act as other users",
		try: "write rules such as RULE:[1:$1] and DEFAULT, separated by spaces or line ends",
		refused: func(s *settings.Settings) (bool, string) {
			if _, err := nameRules(s); err != nil {
				return true, err.Error()
			}
			return false, ""
		},
	},
	{
		key: groupMapping, roles: onServers, example: "com.example.OurGroups",
		why: "creel does not support this class: access lists would be checked against other groups",
		try: "set " + ldapClass + ", or org.apache.hadoop.security.ShellBasedUnixGroupsMapping " +
			"and have this machine know the groups (sssd)",
		refused: func(s *settings.Settings) (bool, string) { return !knownMapping(s), "" },
	},
	{
		key: groupMapping, roles: onServers, example: ldapClass,
		why:     incompleteLDAP,
		try:     byGroupsPage,
		refused: ldapIncomplete,
	},
	{
		key: authorizerURL, roles: onRM, example: "https://opa.example.org/v1/data/yarn/allow",
		why:     "the outside authoriser cannot be asked as configured",
		try:     "set yarn.acl.enable to true and the creel.authorizer keys, by docs/operations/security.md",
		refused: refusedIf(func(s *settings.Settings) error { _, err := outsideAuthorizer(s, nil); return err }),
	},
	{
		key: rpcProtection, roles: onServers, example: "privacy",
		why: "calls of clients without a login are neither signed nor encrypted: they could be read on the network",
		try: "add authentication to the list, on a network that you trust",
		refused: func(s *settings.Settings) (bool, string) {
			list := s.List(rpcProtection)
			return !secure(s) && len(list) > 0 && !slices.Contains(list, "authentication"), ""
		},
	},
	{
		key: credentialProviders, roles: onWeb, example: "user:///",
		why: "creel reads keystores in local files only: passwords in this provider would not be found",
		try: "set jceks://file/PATH, with a keystore that `hadoop credential create` made",
		refused: func(s *settings.Settings) (bool, string) {
			for _, provider := range s.List(credentialProviders) {
				if _, ok := keystoreOf(provider); !ok {
					return true, provider
				}
			}
			return false, ""
		},
	},
	{
		key: ownKeystore, roles: []settings.Role{settings.Router, settings.Agent}, example: "/nowhere/keystore.p12",
		with:    []string{httpPolicy + "=HTTPS_ONLY", needCertificate + "=true"},
		why:     "calls to web ports that need a certificate of the client would fail",
		try:     "name a keystore (JKS or PKCS12) with its password",
		refused: nothingToShow,
	},
	{
		key: httpPolicy, roles: onWeb, example: "HTTPS_ONLY",
		why:     "the settings of TLS are incomplete",
		try:     "set the missing keys, by docs/operations/tls.md",
		refused: incompleteTLS,
	},
	{
		key: pemCertificate, roles: onWeb, example: "/etc/creel/tls.crt",
		why:     "yarn.http.policy is not HTTPS_ONLY: answers would be unencrypted",
		try:     "set yarn.http.policy to HTTPS_ONLY, or remove it",
		refused: withoutTLS(pemCertificate),
	},
	{
		key: pemKey, roles: onWeb, example: "/etc/creel/tls.key",
		why:     "yarn.http.policy is not HTTPS_ONLY: answers would be unencrypted",
		try:     "set yarn.http.policy to HTTPS_ONLY, or remove it",
		refused: withoutTLS(pemKey),
	},
	{
		key: needCertificate, roles: onWeb, example: "true",
		why:     "yarn.http.policy is not HTTPS_ONLY: clients would be served without a certificate",
		try:     "set yarn.http.policy to HTTPS_ONLY, or set false",
		refused: func(s *settings.Settings) (bool, string) { return !httpsOnly(s) && s.Bool(needCertificate), "" },
	},
	{
		key: truststore, roles: []settings.Role{settings.Router, settings.Agent}, example: "/nowhere/truststore.jks",
		why:     "calls to web ports with TLS would fail",
		try:     "name a truststore (JKS, PKCS12 or PEM) with its password, or leave it out",
		refused: unreadableTrust,
	},
	{
		key: webAuthentication, roles: onRM, example: "kerberos",
		why:     incompleteWeb,
		try:     byKerberosPage,
		refused: incompleteWebLogin(settings.RM),
	},
	{
		key: webAuthentication, roles: []settings.Role{settings.Router}, example: "kerberos",
		why:     incompleteWeb,
		try:     byKerberosPage,
		refused: incompleteWebLogin(settings.Router),
	},
	{
		key: webAuthentication, roles: []settings.Role{settings.Proxy, settings.Rebalancer}, example: "kerberos",
		why:     incompleteWeb,
		try:     byKerberosPage,
		refused: incompleteWebLogin(settings.Rebalancer), // a proxy's port is the same: its health
	},
	{
		key: csrfBrowsers, roles: onRM, example: "(",
		with: []string{"yarn.resourcemanager.webapp.rest-csrf.enabled=true"},
		why:  "the list of browsers is invalid",
		try:  "write regular expressions of Go's",
		refused: func(s *settings.Settings) (bool, string) {
			_, err := requiredHeader(s)
			if err != nil {
				return true, err.Error()
			}
			return false, ""
		},
	},
	{
		key: "hadoop.http.cross-origin.allowed-origins", roles: onWeb, example: "regex:(",
		why: "the list of origins is invalid",
		try: "write a regular expression after regex:, or an origin as browsers do, https://host:port",
		refused: func(s *settings.Settings) (bool, string) {
			_, err := originsOf(s)
			return err != nil, ""
		},
	},
	{
		key: haEnabled, roles: onRM, example: "true",
		why:     "the settings of the pair are incomplete: two ResourceManagers would be two clusters with the same nodes",
		try:     "set the missing keys, by docs/operations/redis.md; or set false and start one",
		refused: incompletePair,
	},
	{
		key: stateURL, roles: onRM, example: "redis://r:6379", with: []string{"creel.rm.data=/var/lib/creel"},
		why: "the place of the ResourceManager's state is not clear",
		try: "name one place, and the ResourceManager by yarn.resourcemanager.cluster-id or creel.subcluster.id",
		refused: func(s *settings.Settings) (bool, string) {
			if stateKey(s) != stateURL {
				return false, ""
			}
			return misplacedState(s)
		},
	},
	{
		key: storeClass, roles: onRM, example: recoveryPackage + "ZKRMStateStore",
		with: []string{"yarn.resourcemanager.recovery.enabled=true", "yarn.resourcemanager.cluster-id=c1"},
		why:  "the settings of the state in ZooKeeper are incomplete",
		try:  "set hadoop.zk.address and yarn.resourcemanager.cluster-id, and no creel.rm.data",
		refused: func(s *settings.Settings) (bool, string) {
			if stateKey(s) != storeClass {
				return false, ""
			}
			return misplacedState(s)
		},
	},
	{
		key: redisCertificate, roles: inFederation, example: "/nowhere/tls.crt",
		with:    []string{"creel.store.url=rediss://r:6379", redisKey + "=/nowhere/tls.key"},
		why:     "the settings of TLS to Redis are incomplete",
		try:     "name readable files, or rediss:// (tls=true) in the URL, by docs/operations/redis.md",
		refused: incompleteRedisTLS,
	},
	{
		key: zkTLS, roles: inFederation, example: "true",
		with:    []string{"creel.store.url=zk://z1:2281", zkKeystore + "=/nowhere/keystore.jks"},
		why:     "the settings of TLS to ZooKeeper are incomplete",
		try:     byZooKeeperPage,
		refused: incompleteLogin(zkTLS),
	},
	{
		key: zkPrincipal, roles: inFederation, example: "rm/_HOST@EXAMPLE.ORG",
		with:    []string{"creel.store.url=zk://z1:2181"},
		why:     "the settings of the login by Kerberos at ZooKeeper are incomplete",
		try:     byZooKeeperPage,
		refused: incompleteLogin(zkPrincipal),
	},
	{
		key: federationClass, roles: onWeb,
		example: "org.apache.hadoop.yarn.server.federation.store.impl.SQLFederationStateStore",
		why:     "the settings name no store that creel supports, and neither does creel.store.url: this daemon would be alone",
		try: "set creel.store.url to a store that all of creel's daemons share; or yarn.federation.enabled=true and " +
			"ZookeeperFederationStateStore with " + zkAddress + ", or SQLFederationStateStore with " + sqlURL +
			"=jdbc:mysql://HOST:PORT/DATABASE",
		refused: func(s *settings.Settings) (bool, string) {
			class := s.String(federationClass)
			return class != "" && !Member(s) && !strings.HasSuffix(class, ".MemoryFederationStateStore") &&
				(s.Bool("yarn.federation.enabled") || !strings.HasSuffix(class, ".ZookeeperFederationStateStore")), ""
		},
	},
	{
		key: storeClass, roles: onRM, example: "com.example.OurStore",
		with: []string{"yarn.resourcemanager.recovery.enabled=true", "creel.rm.data=/var/lib/creel"},
		why:  "creel cannot run this class: the state would be in the journal on this machine alone",
		try: "set " + recoveryPackage + "ZKRMStateStore and hadoop.zk.address, or creel.rm.state.url to a Redis; or remove " +
			"it, and put creel.rm.data on a volume that survives the machine",
		refused: func(s *settings.Settings) (bool, string) {
			name := strings.TrimPrefix(s.String(storeClass), recoveryPackage)
			known := []string{
				"", "ZKRMStateStore", "FileSystemRMStateStore", "LeveldbRMStateStore", "MemoryRMStateStore",
				"NullRMStateStore",
			}
			return s.Bool("yarn.resourcemanager.recovery.enabled") && s.String(stateURL) == "" &&
				!slices.Contains(known, name), ""
		},
	},
	{
		key: "yarn.resourcemanager.recovery.enabled", roles: onRM, example: "true",
		why: "without a directory for the journal no state survives a restart",
		try: "give one by --data DIR or creel.rm.data, a Redis by creel.rm.state.url, or a ZooKeeper by " +
			storeClass,
		refused: func(s *settings.Settings) (bool, string) {
			return s.Bool("yarn.resourcemanager.recovery.enabled") && !keepsState(s), ""
		},
	},
	{
		key: "yarn.resourcemanager.nodes.exclude-path", roles: onRM, example: "/nowhere/exclude",
		why:     "it cannot be read, and without it every host may serve",
		try:     "make the file (it may be empty), or leave the setting out",
		refused: unreadable("yarn.resourcemanager.nodes.exclude-path"),
	},
	{
		key: "yarn.resourcemanager.nodes.include-path", roles: onRM, example: "/nowhere/include",
		why:     "it cannot be read, and without it every host may serve",
		try:     "make the file (an empty one lets every host serve), or leave the setting out",
		refused: unreadable("yarn.resourcemanager.nodes.include-path"),
	},
	{
		key: "yarn.resourcemanager.scheduler.class", roles: onRM,
		example: "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fifo.FifoScheduler",
		why:     "creel has a CapacityScheduler and a FairScheduler: other queue limits would be ignored",
		try:     "name one of the two; a FIFO cluster is a CapacityScheduler with one queue",
		refused: func(s *settings.Settings) (bool, string) {
			name := schedulerName(s)
			return name != "CapacityScheduler" && name != "FairScheduler", ""
		},
	},
	{
		key: "yarn.scheduler.configuration.store.class", roles: onRM, example: "zk",
		why: "creel does not support this store: earlier changes of queues would be lost",
		try: "set fs (changes are stored in the journal), memory, or file",
		refused: func(s *settings.Settings) (bool, string) {
			store := s.String("yarn.scheduler.configuration.store.class")
			return store == "zk" || store == "leveldb", ""
		},
	},
	{
		key: "yarn.scheduler.configuration.store.class", roles: onRM, example: "fs",
		why: "without a directory for the journal, changes of queues would be lost in a restart",
		try: "give one by --data DIR or creel.rm.data, a Redis by creel.rm.state.url, or a ZooKeeper by " +
			storeClass + ", or set memory",
		refused: func(s *settings.Settings) (bool, string) {
			return s.String("yarn.scheduler.configuration.store.class") == "fs" && !keepsState(s), ""
		},
	},
	{
		key: "yarn.scheduler.configuration.mutation.acl-policy.class", roles: onRM, example: "com.example.OurPolicy",
		why: "creel cannot run this class: other users than intended could change queues",
		try: "set org.apache.hadoop.yarn.server.resourcemanager.scheduler.DefaultConfigurationMutationACLPolicy or " +
			"org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.conf.QueueAdminConfigurationMutationACLPolicy",
		refused: func(s *settings.Settings) (bool, string) {
			policy := mutationPolicy(s)
			return policy != "DefaultConfigurationMutationACLPolicy" &&
				policy != "QueueAdminConfigurationMutationACLPolicy", ""
		},
	},
	{
		key: distributedScheduling, roles: onRM, example: "true",
		why: "opportunistic container allocation has to be enabled when distributed scheduling is enabled",
		try: "set false, or yarn.resourcemanager.opportunistic-container-allocation.enabled to true",
		refused: func(s *settings.Settings) (bool, string) {
			return s.Bool(distributedScheduling) &&
				!s.Bool("yarn.resourcemanager.opportunistic-container-allocation.enabled"), ""
		},
	},
	{
		key: oversubscription, roles: onRM, example: "true",
		why: "lent containers are opportunistic ones, whose allocation is not enabled",
		try: "set false, or yarn.resourcemanager.opportunistic-container-allocation.enabled to true",
		refused: func(s *settings.Settings) (bool, string) {
			return s.Bool(oversubscription) &&
				!s.Bool("yarn.resourcemanager.opportunistic-container-allocation.enabled"), ""
		},
	},
	{
		key: overallocationKeys + "general-utilization-threshold", roles: onNM, example: "0.8",
		why: "a node could not lend what its containers do not use",
		try: "set yarn.nodemanager.opportunistic-containers-max-queue-length above 0, and thresholds of preemption above " +
			"those of utilization; or set -1",
		refused: func(s *settings.Settings) (bool, string) {
			switch c := overallocation(s); {
			case !lends(c):
				return false, ""
			case !QueueSettings(s).Enabled():
				return true, "no opportunistic container may wait on it"
			default:
				return !c.Enabled(), "a threshold of preemption is not above that of utilization"
			}
		},
	},
	{
		key:     clusterSecretFile,
		roles:   inFederation,
		example: "/nowhere/secret",
		why:     "the secret that encrypts tokens and signs members in the store is unusable",
		try:     "name a file of at least 16 random bytes, the same for all daemons (one that does not exist is made), or leave the setting out",
		refused: func(s *settings.Settings) (bool, string) {
			file := s.String(clusterSecretFile)
			if file == "" {
				return false, ""
			}
			err := checkSecret(file)
			var p *settings.Problem
			if errors.As(err, &p) {
				return true, p.Why
			}
			return err != nil, ""
		},
	},
	{
		key: "creel.debug.address", roles: settings.Roles, example: "0.0.0.0:6060",
		why: "profiles show the process's memory",
		try: "give a loopback address, such as 127.0.0.1:6060",
		refused: func(s *settings.Settings) (bool, string) {
			address := s.Address("creel.debug.address")
			return address != "" && !webserver.Loopback(address), ""
		},
	},
	{
		key: "yarn.node-labels.configuration-type", roles: onRM, example: "delegated-centralized",
		why: "creel does not support label providers: nodes would accept asks that their labels exclude",
		try: "set centralized and label nodes by yarn rmadmin -replaceLabelsOnNode, or distributed",
		refused: func(s *settings.Settings) (bool, string) {
			return s.String("yarn.node-labels.configuration-type") == "delegated-centralized", ""
		},
	},
}

// mayStart rejects settings with which a daemon of this role must not start, and reports all of them at once.
func mayStart(s *settings.Settings, role settings.Role) error {
	var errs []error
	for _, r := range refusals {
		if !slices.Contains(r.roles, role) {
			continue
		}
		refused, reason := r.refused(s)
		if !refused {
			continue
		}
		why := r.why
		if reason != "" {
			why = fmt.Sprintf("%s (%s)", why, reason)
		}
		errs = append(errs, s.Problem(r.key, why, r.try))
	}
	return errors.Join(append(errs, s.Refused(role))...)
}
