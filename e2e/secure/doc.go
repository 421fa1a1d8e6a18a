// SPDX-License-Identifier: Apache-2.0

// Package secure tests Kerberos against a real KDC: MIT's krb5kdc from Debian's packages krb5-kdc, krb5-admin-server
// and krb5-user.
//
// [StartKDC] makes a realm in a temporary directory and serves it on a free loopback port. Nothing of the machine's own
// Kerberos configuration is read or written: each program gets KRB5_CONFIG and KRB5_KDC_PROFILE.
package secure
