# SPDX-License-Identifier: Apache-2.0
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=v0.1.0-dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -X github.com/creelrm/creel/app/daemon/build.version=${VERSION}" \
    -o /out/creel ./cmd/creel && mkdir /out/data

FROM gcr.io/distroless/static-debian12:nonroot
ARG VERSION=v0.1.0-dev
LABEL org.opencontainers.image.title=creel org.opencontainers.image.licenses=Apache-2.0 \
      org.opencontainers.image.version=${VERSION}
COPY --from=build /out/creel /usr/local/bin/creel
COPY --from=build --chown=nonroot:nonroot /out/data /data
ENTRYPOINT ["creel"]
