// SPDX-License-Identifier: Apache-2.0

package servlets

import (
	"fmt"
	"html"
	"net/http"
)

// NotFound answers a request for an unknown document. As in Hadoop, the answer is a page, whatever the client accepts,
// and not a RemoteException.
func NotFound(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html;charset=utf-8")
	w.WriteHeader(http.StatusNotFound)
	const page = "<!DOCTYPE html>\n<html><head><title>Error 404 Not Found</title></head>\n" +
		"<body><h2>HTTP ERROR 404 Not Found</h2>\n<table>\n<tr><th>URI:</th><td>%s</td></tr>\n" +
		"<tr><th>STATUS:</th><td>404</td></tr>\n<tr><th>MESSAGE:</th><td>Not Found</td></tr>\n</table></body></html>\n"
	fmt.Fprintf(w, page, html.EscapeString(r.URL.Path)) // fails only if the client disconnected
}
