// SPDX-License-Identifier: Apache-2.0

// Package kerberos logs in to a KDC by a keytab or by a ticket cache, and obtains tickets for services.
//
// A ResourceManager reads its keytab by this package, and creel's commands log in by it. No daemon obtains tickets yet.
//
//	conf, err := kerberos.LoadConfig("/etc/krb5.conf")
//	login, err := conf.LoginKeytab(principal, keytab)
//	ticket, err := login.Ticket(ctx, service)
//
// Of the module gokrb5 (8.4.4, the newest) it uses the ASN.1 messages and the parser of krb5.conf. It does not use its
// client: that starts goroutines, accepts a reply of any size, and does not check which service a ticket is for.
// Requests go by TCP. Only AES keys are used.
package kerberos
