// SPDX-License-Identifier: Apache-2.0

// Package shell is the distributed shell of `creel run`: a command that runs once in each of several containers.
//
// A [Spec] describes the command. It is passed in the environment of the application's AM. So the same submission
// works on simulated nodes, where [Hook] simulates the AM, and on real NodeManagers, which start creel itself as the
// AM ([FromEnvironment], [Spec.Run]). [Job] makes the decisions: it asks for the containers, counts their outcomes,
// and repeats none of them.
package shell
