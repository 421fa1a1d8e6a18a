// SPDX-License-Identifier: Apache-2.0

// Package deploy holds the files of deploy and docker-compose.yml against what reads
// them: the Compose Specification's schema, and Prometheus' own tool. What the files
// describe is started in e2e/compose.
package deploy
