// SPDX-License-Identifier: Apache-2.0

// Package compose brings docker-compose.yml up on a container engine of its own, which ends with the test: the image
// is built by the Dockerfile, the services run as the file says, with their networks, limits and health checks, and
// the README's tour runs against them. Then parts of it are paused, cut off and killed, as an operator would see them
// fail, and a ResourceManager of Hadoop's joins by docker-compose.hadoop.yml.
//
// Nothing is pulled. The bases of the images are made of what Debian packages: the builder of a minimal Debian and the
// Go of this machine, the runtime of an empty root, Redis and Prometheus of their programs and libraries. Grafana is
// not in Debian: it is left out, and its dashboards are checked as files. Compose itself is built from source, by the
// module in the folder engine.
package compose
