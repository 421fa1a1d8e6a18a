// SPDX-License-Identifier: Apache-2.0

package mariadb

import (
	"database/sql"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// scriptsVariable names a directory with the scripts of a Hadoop distribution, bin/FederationStateStore/MySQL.
const scriptsVariable = "CREEL_HADOOP_SQL"

// CreateHadoopStore creates the tables and procedures of Hadoop's SQLFederationStateStore in a database, as an operator
// does before the first daemon starts. They are Hadoop's own if scriptsVariable names its scripts, else equivalent
// ones: Hadoop publishes its scripts in no jar. The procedures that fail on MariaDB are then replaced by those of the
// page for operators.
func CreateHadoopStore(t testing.TB, db *sql.DB) {
	t.Helper()
	if dir := os.Getenv(scriptsVariable); dir != "" {
		for _, name := range []string{"FederationStateStoreTables.sql", "FederationStateStoreStoredProcs.sql"} {
			script, err := os.ReadFile(filepath.Join(dir, name))
			must(t, err)
			Exec(t, db, statementsOf(string(script))...)
		}
	} else {
		Exec(t, db, hadoopTables...)
		for _, p := range hadoopProcedures {
			Exec(t, db, p.statement())
		}
	}
	Exec(t, db, Replacements(t)...)
}

// Replacements returns the statements of the page for operators.
func Replacements(t testing.TB) []string {
	t.Helper()
	page, err := os.ReadFile(filepath.FromSlash("../../docs/operations/mariadb.md"))
	must(t, err)
	_, block, _ := strings.Cut(string(page), "\n```sql\n")
	block, _, found := strings.Cut(block, "\n```\n")
	if !found {
		t.Fatal("the page for operators has no SQL")
	}
	return statementsOf(block)
}

var (
	scriptComment = regexp.MustCompile(`(?s)/\*.*?\*/|--[^\n]*`)
	databaseUse   = regexp.MustCompile(`(?i)^USE\s+\w+$`)
)

// statementsOf splits a script of the mysql client. The database that it uses does not count.
func statementsOf(script string) (statements []string) {
	delimiter, rest := ";", scriptComment.ReplaceAllString(script, "")
	for rest = strings.TrimSpace(rest); rest != ""; rest = strings.TrimSpace(rest) {
		if line, after, _ := strings.Cut(rest, "\n"); strings.HasPrefix(line, "DELIMITER ") {
			delimiter, rest = strings.Fields(line)[1], after
			continue
		}
		statement, after, _ := strings.Cut(rest, delimiter)
		if statement = strings.TrimSpace(statement); !databaseUse.MatchString(statement) {
			statements = append(statements, statement)
		}
		rest = after
	}
	return statements
}

// hadoopTables have the columns, sizes and keys of Hadoop's tables.
var hadoopTables = []string{
	`CREATE TABLE membership (subClusterId varchar(256) PRIMARY KEY, amRMServiceAddress varchar(256) NOT NULL,
		clientRMServiceAddress varchar(256) NOT NULL, rmAdminServiceAddress varchar(256) NOT NULL,
		rmWebServiceAddress varchar(256) NOT NULL, lastHeartBeat datetime NOT NULL, state varchar(32) NOT NULL,
		lastStartTime bigint UNIQUE, capability varchar(6000))`,
	`CREATE TABLE applicationsHomeSubCluster (applicationId varchar(64) PRIMARY KEY,
		homeSubCluster varchar(256) NOT NULL, createTime datetime NOT NULL, applicationContext blob)`,
	`CREATE TABLE reservationsHomeSubCluster (reservationId varchar(128) PRIMARY KEY,
		homeSubCluster varchar(256) NOT NULL)`,
	`CREATE TABLE policies (queue varchar(256) PRIMARY KEY, policyType varchar(256) NOT NULL, params varbinary(32768))`,
	`CREATE TABLE masterKeys (keyId bigint PRIMARY KEY, masterKey varchar(1024) NOT NULL)`,
	`CREATE TABLE delegationTokens (sequenceNum bigint PRIMARY KEY, tokenIdent varchar(1024) NOT NULL,
		token varchar(1024) NOT NULL, renewDate bigint NOT NULL)`,
	`CREATE TABLE sequenceTable (sequenceName varchar(255) PRIMARY KEY, nextVal bigint NOT NULL)`,
	`CREATE TABLE versions (fedVersion varbinary(1024) PRIMARY KEY, versionComment varchar(255))`,
}

// procedure is a procedure that SQLFederationStateStore calls. The suffixes of its parameters are their directions.
// The body is one statement and, if it reports rows, their number.
type procedure struct{ name, parameters, body string }

// sizes are the types of parameters other than varchar(256).
var sizes = map[string]string{
	"capability": "varchar(6000)", "params": "varbinary(32768)", "fedVersion": "varbinary(1024)",
	"masterKey": "varchar(1024)", "tokenIdent": "varchar(1024)", "token": "varchar(1024)",
	"applicationContext": "blob", "createTime": "datetime", "lastHeartBeat": "datetime", "lastStartTime": "bigint",
	"keyId": "bigint", "sequenceNum": "bigint", "renewDate": "bigint", "rowCount": "int",
}

func (p procedure) statement() string {
	var parameters []string
	for _, name := range strings.Fields(p.parameters) {
		column, direction, _ := strings.Cut(name, "_")
		size := sizes[column]
		if size == "" {
			size = "varchar(256)"
		}
		parameters = append(parameters, direction+" "+name+" "+size)
	}
	body := strings.ReplaceAll(p.body, "COUNT;", "SET rowCount_OUT = ROW_COUNT();")
	return "CREATE PROCEDURE " + p.name + "(" + strings.Join(parameters, ", ") + ") BEGIN " + body + " END"
}

// hadoopProcedures do the same as those of Hadoop's scripts. A member and a policy are deleted and inserted, so readers
// between the two statements find none.
var hadoopProcedures = []procedure{
	{
		"sp_registerSubCluster", "subClusterId_IN amRMServiceAddress_IN clientRMServiceAddress_IN " +
			"rmAdminServiceAddress_IN rmWebServiceAddress_IN state_IN lastStartTime_IN capability_IN rowCount_OUT",
		`DELETE FROM membership WHERE subClusterId = subClusterId_IN;
		INSERT INTO membership SET subClusterId = subClusterId_IN, amRMServiceAddress = amRMServiceAddress_IN,
			clientRMServiceAddress = clientRMServiceAddress_IN, rmAdminServiceAddress = rmAdminServiceAddress_IN,
			rmWebServiceAddress = rmWebServiceAddress_IN, lastHeartBeat = NOW(), state = state_IN,
			lastStartTime = lastStartTime_IN, capability = capability_IN; COUNT;`,
	},
	{
		"sp_deregisterSubCluster", "subClusterId_IN state_IN rowCount_OUT",
		"UPDATE membership SET state = state_IN WHERE subClusterId = subClusterId_IN AND state <> state_IN; COUNT;",
	},
	{
		"sp_subClusterHeartbeat", "subClusterId_IN state_IN capability_IN rowCount_OUT",
		`UPDATE membership SET lastHeartBeat = NOW(), state = state_IN, capability = capability_IN
			WHERE subClusterId = subClusterId_IN; COUNT;`,
	},
	{
		"sp_getSubCluster", "subClusterId_IN amRMServiceAddress_OUT clientRMServiceAddress_OUT " +
			"rmAdminServiceAddress_OUT rmWebServiceAddress_OUT lastHeartBeat_OUT state_OUT lastStartTime_OUT capability_OUT",
		`SELECT amRMServiceAddress, clientRMServiceAddress, rmAdminServiceAddress, rmWebServiceAddress, lastHeartBeat,
				state, lastStartTime, capability
			INTO amRMServiceAddress_OUT, clientRMServiceAddress_OUT, rmAdminServiceAddress_OUT, rmWebServiceAddress_OUT,
				lastHeartBeat_OUT, state_OUT, lastStartTime_OUT, capability_OUT
			FROM membership WHERE subClusterId = subClusterId_IN;`,
	},
	{"sp_getSubClusters", "", "SELECT * FROM membership;"},
	{
		"sp_addApplicationHomeSubCluster", "applicationId_IN homeSubCluster_IN applicationContext_IN " +
			"storedHomeSubCluster_OUT rowCount_OUT",
		`INSERT IGNORE INTO applicationsHomeSubCluster SET applicationId = applicationId_IN,
			homeSubCluster = homeSubCluster_IN, createTime = NOW(), applicationContext = applicationContext_IN; COUNT;
		SELECT homeSubCluster INTO storedHomeSubCluster_OUT FROM applicationsHomeSubCluster
			WHERE applicationId = applicationId_IN;`,
	},
	{
		"sp_updateApplicationHomeSubCluster", "applicationId_IN homeSubCluster_IN applicationContext_IN rowCount_OUT",
		`UPDATE applicationsHomeSubCluster SET homeSubCluster = homeSubCluster_IN,
			applicationContext = applicationContext_IN WHERE applicationId = applicationId_IN; COUNT;`,
	},
	{
		"sp_getApplicationHomeSubCluster", "applicationId_IN homeSubCluster_OUT createTime_OUT applicationContext_OUT",
		`SELECT homeSubCluster, createTime, applicationContext
			INTO homeSubCluster_OUT, createTime_OUT, applicationContext_OUT
			FROM applicationsHomeSubCluster WHERE applicationId = applicationId_IN;`,
	},
	{
		"sp_deleteApplicationHomeSubCluster", "applicationId_IN rowCount_OUT",
		"DELETE FROM applicationsHomeSubCluster WHERE applicationId = applicationId_IN; COUNT;",
	},
	{
		"sp_setPolicyConfiguration", "queue_IN policyType_IN params_IN rowCount_OUT",
		`DELETE FROM policies WHERE queue = queue_IN;
		INSERT INTO policies SET queue = queue_IN, policyType = policyType_IN, params = params_IN; COUNT;`,
	},
	{
		"sp_getPolicyConfiguration", "queue_IN policyType_OUT params_OUT",
		"SELECT policyType, params INTO policyType_OUT, params_OUT FROM policies WHERE queue = queue_IN;",
	},
	{"sp_getPoliciesConfigurations", "", "SELECT * FROM policies;"},
	{
		"sp_updateReservationHomeSubCluster", "reservationId_IN homeSubCluster_IN rowCount_OUT",
		`UPDATE reservationsHomeSubCluster SET homeSubCluster = homeSubCluster_IN
			WHERE reservationId = reservationId_IN; COUNT;`,
	},
	{
		"sp_getReservationHomeSubCluster", "reservationId_IN homeSubCluster_OUT",
		`SELECT homeSubCluster INTO homeSubCluster_OUT FROM reservationsHomeSubCluster
			WHERE reservationId = reservationId_IN;`,
	},
	{"sp_getReservationsHomeSubCluster", "", "SELECT * FROM reservationsHomeSubCluster;"},
	{
		"sp_deleteReservationHomeSubCluster", "reservationId_IN rowCount_OUT",
		"DELETE FROM reservationsHomeSubCluster WHERE reservationId = reservationId_IN; COUNT;",
	},
	{
		"sp_addMasterKey", "keyId_IN masterKey_IN rowCount_OUT",
		"INSERT IGNORE INTO masterKeys SET keyId = keyId_IN, masterKey = masterKey_IN; COUNT;",
	},
	{
		"sp_getMasterKey", "keyId_IN masterKey_OUT",
		"SELECT masterKey INTO masterKey_OUT FROM masterKeys WHERE keyId = keyId_IN;",
	},
	{"sp_deleteMasterKey", "keyId_IN rowCount_OUT", "DELETE FROM masterKeys WHERE keyId = keyId_IN; COUNT;"},
	{
		"sp_addDelegationToken", "sequenceNum_IN tokenIdent_IN token_IN renewDate_IN rowCount_OUT",
		`INSERT IGNORE INTO delegationTokens SET sequenceNum = sequenceNum_IN, tokenIdent = tokenIdent_IN,
			token = token_IN, renewDate = renewDate_IN; COUNT;`,
	},
	{
		"sp_getDelegationToken", "sequenceNum_IN tokenIdent_OUT token_OUT renewDate_OUT",
		`SELECT tokenIdent, token, renewDate INTO tokenIdent_OUT, token_OUT, renewDate_OUT
			FROM delegationTokens WHERE sequenceNum = sequenceNum_IN;`,
	},
	{
		"sp_updateDelegationToken", "sequenceNum_IN tokenIdent_IN token_IN renewDate_IN rowCount_OUT",
		`UPDATE delegationTokens SET tokenIdent = tokenIdent_IN, token = token_IN, renewDate = renewDate_IN
			WHERE sequenceNum = sequenceNum_IN; COUNT;`,
	},
	{
		"sp_deleteDelegationToken", "sequenceNum_IN rowCount_OUT",
		"DELETE FROM delegationTokens WHERE sequenceNum = sequenceNum_IN; COUNT;",
	},
	{
		"sp_storeVersion", "fedVersion_IN versionComment_IN rowCount_OUT",
		`DELETE FROM versions; INSERT INTO versions SET fedVersion = fedVersion_IN, versionComment = versionComment_IN;
		COUNT;`,
	},
	{
		"sp_getVersion", "fedVersion_OUT versionComment_OUT",
		"SELECT fedVersion, versionComment INTO fedVersion_OUT, versionComment_OUT FROM versions LIMIT 1;",
	},
}
