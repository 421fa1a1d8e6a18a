// SPDX-License-Identifier: Apache-2.0

// Package kerberos logs in to a KDC by a keytab or by a ticket cache, and obtains tickets for services.
//
// Daemons read their keytabs by this package. Routers and AM-RM proxies obtain tickets for members by it, and creel's
// commands log in by it.
//
//	conf, err := kerberos.LoadConfig("/etc/krb5.conf")
//	login, err := conf.LoginKeytab(principal, keytab)
//	ticket, err := login.Ticket(ctx, service)
//
// Of the module gokrb5 (8.4.4, the newest) it uses the ASN.1 messages and the parser of krb5.conf. It does not use its
// client: that starts goroutines, accepts a reply of any size, and does not check which service a ticket is for.
// Requests go by TCP. Only AES keys are used.
package kerberos
