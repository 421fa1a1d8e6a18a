// SPDX-License-Identifier: Apache-2.0

// Package directory finds the groups of users in an LDAP directory, as Hadoop's LdapGroupsMapping does with the same
// configuration.
//
// # Promises
//
//   - A user's name and a DN are escaped in every filter: a name cannot change the search.
//   - TLS is verified against the server's host name, and a search without a complete answer is an error.
//   - A user for whom the filter finds several entries is an error: Hadoop takes the first.
//   - Each lookup has a connection of its own, and a bounded number of them is open.
//
// # The caller owes
//
// A cache: [Directory.Groups] calls the directory each time. Referrals are not followed.
package directory
