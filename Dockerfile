# SPDX-License-Identifier: Apache-2.0
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags=-s -o /out/creel ./cmd/creel && mkdir /out/data

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /out/creel /usr/local/bin/creel
COPY --from=build --chown=nonroot:nonroot /out/data /data
ENTRYPOINT ["creel"]
