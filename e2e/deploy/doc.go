// SPDX-License-Identifier: Apache-2.0

// Package deploy holds the files of deploy and docker-compose.yml against what reads
// them: the Compose Specification's schema, Prometheus' and systemd's own tools, and
// dpkg, which installs the package of a release that is built here twice, of two
// trees, to the same bytes. The Helm chart is rendered by Helm's engine and read with
// Kubernetes' types, by the module in the folder render. What docker-compose.yml describes is started in
// e2e/compose.
package deploy
