// SPDX-License-Identifier: Apache-2.0

// Package deploy holds docker-compose.yml against the Compose Specification's
// schema and starts what it describes, without an engine: each service's command
// as it stands in the file, as a process of this machine, with a loopback address
// in the place of each service's name. Then it runs the tour of the README.
package deploy
