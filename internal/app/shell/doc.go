// SPDX-License-Identifier: Apache-2.0

// Package shell is the distributed shell of `creel run`: a command that runs in
// a number of containers, once in each.
//
// A [Spec] says what runs. It travels in the environment of the application's
// AM, so that the same submission works on simulated nodes, where [Hook] plays
// the AM, and on real NodeManagers, which start creel itself as the AM
// ([FromEnvironment], [Spec.Run]). [Job] decides: it asks for the containers,
// counts how they end, and repeats none of them.
package shell
