// SPDX-License-Identifier: Apache-2.0

package rest

import (
	_ "embed"
	"net/http"
)

// openapi describes the API below /api/v1; a test compares it with the handlers.
//
//go:embed openapi.json
var openapi []byte

func (h *Handler) openapi(w http.ResponseWriter, r *http.Request) {
	w.Header()["Content-Type"] = asJSON
	send(w, r, http.StatusOK, openapi)
}
