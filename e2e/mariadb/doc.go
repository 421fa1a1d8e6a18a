// SPDX-License-Identifier: Apache-2.0

// Package mariadb runs real servers of MariaDB, each with its own directory and a port of the loopback interface. Its
// tests prove the state store in Hadoop's tables: the whole contract, and servers that are killed, restarted, paused
// and cut off. Package federation runs Hadoop's daemons over them. With CREEL_HADOOP_SQL=DIR the tests use the scripts
// of a Hadoop distribution.
package mariadb
