// SPDX-License-Identifier: Apache-2.0

// Package token mints and verifies Hadoop's tokens: what an identifier says, which key signs it, when the key rolls,
// who may renew. It is pure: time and chance are arguments, nothing is stored, no lock is held. Owners keep the
// machines, journal what they return and answer SASL with what they accept.
//
// # What a token is
//
// A token is an identifier (a bare protobuf), a password, a kind and a service. The password is
// HMAC-SHA1(master key, identifier), 20 bytes; whoever has the key recomputes it and needs no list of tokens. Only
// delegation tokens are listed, because they are renewed and cancelled. Keys are 8 random bytes, as Hadoop makes
// them; any length is accepted.
//
// | token | minted and verified by | machine |
// |---|---|---|
// | AMRM | the ResourceManager | [Keys] |
// | NM, container | minted by the ResourceManager, verified by nodes | [Keys] |
// | delegation | ResourceManager or Router | [Delegations] |
// | client to AM | ResourceManager and one AM | a [Key] per attempt |
//
// Java verifiers hash the identifier after parsing and writing it again, so identifiers are written in ascending
// field order with minimal varints; we verify the bytes as they came.
//
// # Chance
//
// Keys come from the *rand.Rand a caller passes, so it has to be one nobody can predict:
// rand.New(rand.NewChaCha8(seed))
// with a seed of crypto/rand. Simulations pass a seeded one.
//
// # Files
//
// writable.go: Hadoop's Writable primitives. carrier.go: tokens and credentials in all their encodings. ident.go: the
// identifiers. key.go: keys, passwords and the pre-keyed Mac. roll.go: keys that roll, on the ResourceManager and on
// the node. delegation.go: tokens that are renewed and cancelled.
package token
