// SPDX-License-Identifier: Apache-2.0

package settings

import "testing"

// Hadoop's keys name the store in ZooKeeper, unless creel's key names one.
func TestHadoopsKeysNameTheStore(t *testing.T) {
	const class = "yarn.federation.state-store.class=org.apache.hadoop.yarn.server.federation.store.impl.ZookeeperFederationStateStore"
	const address, enabled = "hadoop.zk.address= z1:2181, z2:2181 ", "yarn.federation.enabled=true"
	const sql, jdbc = "yarn.federation.state-store.class=a.SQLFederationStateStore", "yarn.federation.state-store.sql.url="
	for _, c := range []struct {
		want    string
		defines []string
	}{
		{"zk://z1:2181,z2:2181/federationstore", []string{class, address, enabled}},
		{"zk://z1:2181,z2:2181/own/path", []string{class, address, enabled, "yarn.federation.zk-state-store.parent-path=/own/path"}},
		{"redis://r:6379", []string{class, address, enabled, "creel.store.url=redis://r:6379"}},
		{"memory", []string{class, address}},
		{"memory", []string{class, enabled}},
		{"memory", []string{address, enabled}},
		{"memory", []string{sql, address, enabled}},
		{"memory", []string{sql, enabled, jdbc + "jdbc:hsqldb:mem:state"}},
		{"memory", []string{sql, jdbc + "jdbc:mysql://db/fed"}},
		{"mysql://db:3306/fed", []string{sql, enabled, jdbc + "jdbc:mysql://db:3306/fed?user=u&password=word&useSSL=false"}},
		{"mysql://db/fed?tls=true", []string{sql, enabled, jdbc + "jdbc:mariadb://db/fed?sslMode=verify-full"}},
	} {
		s := loadDefines(t, c.defines...)
		if got := s.String("creel.store.url"); got != c.want {
			t.Errorf("with %v the store is %s, want %s", c.defines, got, c.want)
		}
	}
}
