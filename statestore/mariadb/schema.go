// SPDX-License-Identifier: Apache-2.0

package mariadb

import (
	"context"
	"fmt"
	"strings"

	"github.com/creelrm/creel"
)

// tables are the statements that create the tables: Hadoop's as its scripts of 3.4 do, and creel's.
var tables = map[string]string{
	"applicationsHomeSubCluster": `(
		applicationId varchar(64) NOT NULL PRIMARY KEY, homeSubCluster varchar(256) NOT NULL,
		createTime datetime NOT NULL, applicationContext BLOB NULL)`,
	"membership": `(
		subClusterId varchar(256) NOT NULL PRIMARY KEY, amRMServiceAddress varchar(256) NOT NULL,
		clientRMServiceAddress varchar(256) NOT NULL, rmAdminServiceAddress varchar(256) NOT NULL,
		rmWebServiceAddress varchar(256) NOT NULL, lastHeartBeat datetime NOT NULL, state varchar(32) NOT NULL,
		lastStartTime bigint NULL, capability varchar(6000), UNIQUE(lastStartTime))`,
	"policies": `(
		queue varchar(256) NOT NULL PRIMARY KEY, policyType varchar(256) NOT NULL, params varbinary(32768))`,
	"reservationsHomeSubCluster": `(
		reservationId varchar(128) NOT NULL PRIMARY KEY, homeSubCluster varchar(256) NOT NULL)`,
	"creel_nodes": `(
		path varbinary(1500) NOT NULL PRIMARY KEY, parent varbinary(1500) NOT NULL, data longblob NOT NULL,
		version bigint NOT NULL, created bigint NOT NULL, mtime bigint NOT NULL, KEY (parent))`,
}

// Prepare creates the tables that are missing, and rejects a server or tables that cannot keep the promises.
func (t *tree) Prepare(ctx context.Context) error {
	var packet int64
	if err := t.db.QueryRowContext(ctx, "SELECT @@GLOBAL.max_allowed_packet").Scan(&packet); err != nil {
		return t.translated(err)
	}
	if packet < maxPacket {
		return unusable(fmt.Sprintf("its max_allowed_packet is %d", packet),
			fmt.Sprintf("set max_allowed_packet=%d at the server, and restart it", maxPacket))
	}
	engines, err := t.engines(ctx)
	if err != nil {
		return err
	}
	for table, columns := range tables {
		engine, is := engines[table]
		if !is { // a server with lower_case_table_names=1 has it so
			engine, is = engines[strings.ToLower(table)]
		}
		switch {
		case is && engine != "InnoDB":
			return unusable("the table "+table+" has the engine "+engine+", which has no transactions",
				"ALTER TABLE "+table+" ENGINE=InnoDB")
		case is:
			continue
		}
		_, err := t.db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS "+table+" "+columns+" ENGINE=InnoDB")
		if err != nil {
			return t.translated(err)
		}
	}
	var created int
	err = t.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE()"+
		" AND TABLE_NAME = 'applicationsHomeSubCluster' AND COLUMN_NAME = 'createTime'").Scan(&created)
	if err == nil && created == 0 {
		return unusable("its tables are those of Hadoop before 3.4: applicationsHomeSubCluster has no createTime",
			"create them by the scripts of Hadoop 3.4, in bin/FederationStateStore/MySQL")
	}
	return t.translated(err)
}

func unusable(why, try string) error {
	return &creel.Error{Kind: creel.ErrNotPermitted, What: "MariaDB cannot hold the state store", Why: why, Try: try}
}

// engines are the engines of the database's tables. A view in lower case may stand beside applicationsHomeSubCluster,
// for the procedure of Hadoop's that names its table so.
func (t *tree) engines(ctx context.Context) (map[string]string, error) {
	rows, err := t.db.QueryContext(ctx,
		"SELECT TABLE_NAME, COALESCE(ENGINE, 'none') FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()")
	if err != nil {
		return nil, t.translated(err)
	}
	defer rows.Close()
	engines := map[string]string{}
	for rows.Next() {
		var table, engine string
		if err := rows.Scan(&table, &engine); err != nil {
			return nil, t.translated(err)
		}
		engines[table] = engine
	}
	return engines, t.translated(rows.Err())
}
