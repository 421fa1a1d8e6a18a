// SPDX-License-Identifier: Apache-2.0

// Package compose brings docker-compose.yml up on a container engine of its own, which ends with the test: the
// Dockerfile builds the image, the services run as the file says, with their networks, limits and health checks, and
// the README's tour runs against them. Then parts of it are paused, cut off and killed, as an operator would see them
// fail, and Hadoop's ResourceManager joins by docker-compose.hadoop.yml.
//
// Nothing is pulled. The images' bases are built from Debian packages: the builder from a minimal Debian and this
// machine's Go, the runtime from an empty root, Redis and Prometheus from their programs and libraries. Debian lacks
// Grafana, so its dashboards are checked as files. Compose itself is built from source, by the module in the folder
// engine.
package compose
