// SPDX-License-Identifier: Apache-2.0

// Package token creates and verifies Hadoop's tokens: the identifier's content, its signing key, rolling of keys, and
// the right to renew. It performs no I/O: time and randomness are arguments, nothing is stored, no lock is taken.
// Owners of the state machines write their results to a journal, and answer SASL with the tokens that they accept.
//
// # Tokens
//
// A token is an identifier (a bare protobuf), a password, a kind and a service. The password is HMAC-SHA1(master key,
// identifier), 20 bytes. Any owner of the key can recompute it, without a list of tokens. Only delegation tokens are
// listed, because they are renewed and cancelled. Keys are 8 random bytes, as in Hadoop; any length is accepted.
//
// | token | created and verified by | state machine |
// |---|---|---|
// | AMRM | the ResourceManager | [Keys] |
// | NM, container | created by the ResourceManager, verified by nodes | [Keys] |
// | delegation | ResourceManager or Router | [Delegations] |
// | client to AM | ResourceManager and one AM | a [Key] per attempt |
//
// Java verifiers parse the identifier, write it again and hash the result. So identifiers are written in ascending
// field order with minimal varints. creel verifies the received bytes.
//
// # Randomness
//
// Keys come from a caller's *rand.Rand, which must be unpredictable: rand.New(rand.NewChaCha8(seed)) with a seed from
// crypto/rand. Simulations pass a seeded one.
//
// # Files
//
// writable.go: Hadoop's Writable primitives. carrier.go: tokens and credentials in all their encodings. ident.go: the
// identifiers. key.go: keys, passwords and the pre-keyed Mac. roll.go: keys that roll, on the ResourceManager and on
// the node. delegation.go: tokens that are renewed and cancelled.
package token
