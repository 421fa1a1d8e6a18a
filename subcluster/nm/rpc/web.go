// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/nm/server"
)

// logFile is the one log of a simulated container, by its usual name.
const logFile = "stdout"

// webServer serves the logs of a farm's containers as a NodeManager's web server does. All nodes share one port, and a
// container's id names its node.
func (f *Farm) webServer() *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ws/v1/node/containers/{id}/logs", f.logged(listLogs))
	mux.HandleFunc("GET /ws/v1/node/containerlogs/{id}/{file}", f.logged(readLog))
	mux.HandleFunc("GET /node/containerlogs/{id}/{user}", f.logged(printText))
	return &http.Server{
		Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
}

func listLogs(w http.ResponseWriter, r *http.Request, text string) {
	type file struct {
		Name string `json:"fileName"`
		Size string `json:"fileSize"`
	}
	type info struct {
		Files       []file `json:"containerLogInfo"`
		Aggregation string `json:"logAggregationType"`
		Container   string `json:"containerId"`
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string][]info{"containerLogsInfo": {{
		Files: []file{{logFile, strconv.Itoa(len(text))}}, Aggregation: "LOCAL", Container: r.PathValue("id"),
	}}})
}

// readLog serves a log, or with ?size= its first bytes, or with a negative number its last.
func readLog(w http.ResponseWriter, r *http.Request, text string) {
	if r.PathValue("file") != logFile {
		http.Error(w, "The container has one log, "+logFile+".", http.StatusNotFound)
		return
	}
	if size, err := strconv.ParseInt(r.URL.Query().Get("size"), 10, 64); err == nil {
		n := int64(len(text))
		if size < 0 {
			text = text[n+max(size, -n):]
		} else {
			text = text[:min(n, size)]
		}
	}
	printText(w, r, text)
}

func printText(w http.ResponseWriter, _ *http.Request, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write([]byte(text))
}

// logged finds the container of a request.
func (f *Farm) logged(serve func(http.ResponseWriter, *http.Request, string)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id, err := creel.ParseContainerID(r.PathValue("id"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		for _, n := range f.at(r.Context()) {
			if text, known := n.Log(id); known {
				serve(w, r, text)
				return
			}
		}
		http.Error(w, "The node has no container "+id.String()+".", http.StatusNotFound)
	}
}

// at returns the nodes that have the address of a request: one, or all where they share 127.0.0.1.
func (f *Farm) at(ctx context.Context) (nodes []*server.Node) {
	local, _ := ctx.Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if local == nil {
		return nil
	}
	for _, l := range f.listeners {
		id := creel.NodeID{Host: local.IP.String(), Port: int32(l.Addr().(*net.TCPAddr).Port)}
		if n := f.Node(id); n != nil {
			nodes = append(nodes, n)
		}
	}
	return nodes
}
