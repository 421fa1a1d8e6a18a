// SPDX-License-Identifier: Apache-2.0

// Package deploy checks the files of deploy and docker-compose.yml with the tools that read them. They are the Compose
// Specification's schema, the tools of Prometheus and systemd, and dpkg. dpkg installs the package of a release. The
// release is built twice here, from two trees, to the same bytes. The module in the folder render renders the Helm
// chart with Helm's engine and reads it with Kubernetes' types. e2e/compose starts docker-compose.yml.
package deploy
