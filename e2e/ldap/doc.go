// SPDX-License-Identifier: Apache-2.0

// Package ldap runs group mappings against OpenLDAP's server, beside Hadoop's LdapGroupsMapping with the same
// configuration.
package ldap
