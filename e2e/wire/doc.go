// SPDX-License-Identifier: Apache-2.0

// Package wire proves our end of Hadoop RPC and of YARN's protocols against
// the other end that we did not write: Hadoop's YarnClient against a server of
// ours, our client against a real ResourceManager and a real NodeManager, and
// our server's speed beside Hadoop's own. It has only tests.
package wire
