// SPDX-License-Identifier: Apache-2.0

// Package compose starts docker-compose.yml on a container engine of its own, which ends with the test. The Dockerfile
// builds the image. The services run as in the file, with their networks, limits and health checks, and the README's
// tour runs against them. Then parts of it are paused, cut off and killed, to show an operator's view of a failure.
// Hadoop's ResourceManager joins by docker-compose.hadoop.yml.
//
// Nothing is pulled. The images' bases are built from Debian packages. The builder is a minimal Debian with this
// machine's Go. The runtime starts from an empty root. Redis and Prometheus consist of their programs and libraries.
// Debian lacks Grafana, so its dashboards are checked as files. Compose itself is built from source, by the module in
// the folder engine.
package compose
