// SPDX-License-Identifier: Apache-2.0

// Package sim runs a whole federation in virtual time, on the code that runs
// in the daemons: the ResourceManagers' machines, the NodeManagers', the
// proxies' sessions, the routers' submission core, the policies and the state
// store. It is what the machines' purity buys: no goroutine, no clock and no
// socket, so the same Config gives the same events, byte for byte, and a
// failure is a seed.
//
// # What it is made of
//
// World is an event heap and a random source. A host (a ResourceManager, a
// node, a proxy, a router, the store, a client) is what can be up or down and
// be cut off from others; call carries a request between two of them and the
// answer back, late, twice or never as the faults have it. Around each machine
// lies the driver that fulfils the duties its package names, and the daemons run
// the same code: the proxy's (amrmproxy.Driver, Recording, LaunchUAM, DropUAM), the
// ResourceManager's turn, its journal's records and the start of AMs
// (subcluster/rm/turn), the translation of messages and minting of tokens
// (subcluster/rm/codec), a node's pace and what it checks of a caller
// (subcluster/nm), what follows from a read of the store (subcluster.Observer), and
// the router's submission, memory of homes and assumed load (package router). A
// message between two hosts is the protobuf that goes over the wire.
//
// The simulator's own are the event heap, the network, faults, clients and AMs, the
// auditor, and the loops that post and perform. It does not simulate the store's
// subscription, a member's epoch as the store gives it (subcluster/remote takes
// it; here it is the time of the start), master keys that roll, the check of an
// AM's token by its proxy, and questions to routers about an application's home.
//
// What waits for answers runs as a coroutine (iter.Pull, flow.go), so that
// virtual time passes between any two of its steps and a router can die there.
//
// # What it checks
//
// The auditor looks at what happened after each event: an application has one
// home and is played to its end once; a container is granted, started, ended
// and told once each; no node and no queue is above its limit after a grant;
// no UAM outlives its application for longer than a silent AM
// may live; and what the event changed in a ResourceManager still adds up, by
// its own rm.Auditor. Every so often, and at the end, each ResourceManager's
// own Audit runs over everything it has. At the end nothing may be left: no application
// unfinished, no container, no session, no UAM record.
package sim
