// SPDX-License-Identifier: Apache-2.0

package spnego

import (
	"encoding/json"
	"net/http"

	"github.com/creelrm/creel/internal/httpguard"
	"github.com/creelrm/creel/internal/query"
)

// tokenHeaders have a client's delegation token. The second one is that of older ResourceManagers.
var tokenHeaders = [...]string{"X-Hadoop-Delegation-Token", "Hadoop-Yarn-Auth-Delegation-Token"}

// TokenParameter has a delegation token in the query.
const TokenParameter = "delegation"

// shownToken returns the delegation token of a request. shown: there is one, valid or not.
func shownToken(r *http.Request) (text string, shown bool) {
	for _, name := range tokenHeaders {
		if values := r.Header[name]; len(values) > 0 {
			return values[0], true
		}
	}
	for name, value := range query.Pairs(r.URL.RawQuery) {
		if name == TokenParameter {
			return value, true
		}
	}
	return "", false
}

// HideToken removes delegation tokens from the headers of a request, so that nothing behind the login can pass them on.
func HideToken(h http.Header) {
	for _, name := range tokenHeaders {
		delete(h, name)
	}
}

// byToken returns the login of a request with a delegation token. A rejected token is answered as Hadoop answers. No
// cookie is set: it would outlive a cancelled token.
func (l *Login) byToken(w http.ResponseWriter, text string) (who httpguard.Login, ok bool) {
	who, err := l.Tokens(text)
	if err == nil && who.User != "" {
		who.Ticket = false
		return who, true
	}
	const class = "AuthenticationException"
	message := "the delegation token has no owner"
	if err != nil {
		message = err.Error()
	}
	body, err := json.Marshal(map[string]map[string]string{"RemoteException": {
		"exception": class, "message": message,
		"javaClassName": "org.apache.hadoop.security.authentication.client." + class,
	}})
	if err != nil { // strings are always valid
		body = nil
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusForbidden)
	w.Write(body) // fails only if the client closed the connection
	return httpguard.Login{}, false
}
