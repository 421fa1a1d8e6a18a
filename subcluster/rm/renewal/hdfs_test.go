// SPDX-License-Identifier: Apache-2.0

package renewal

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/token"
)

// Errors go to the log of an operator.
func TestErrorsOfNameNodesHaveNoJavaNames(t *testing.T) {
	client := hrpc.NewClient(hrpc.ClientConfig{})
	defer client.Close()
	h := NewHDFS(client, func(string, string) hrpc.Login { return hrpc.Login{} }, func(string) []string { return nil }, "rm")
	answers := func(class string) error {
		return h.call(t.Context(), tokenOf("a").Service, "", func(*hrpc.Peer) error {
			return &hrpc.RemoteError{Class: class, Message: class + ": yarn is not its renewer\n\tat org.apache.Server(1)"}
		})
	}
	const denied = "org.apache.hadoop.security.AccessControlException"
	if err := answers(denied); !errors.Is(err, ErrRejected) || !strings.HasSuffix(err.Error(), ": yarn is not its renewer") {
		t.Error(err)
	}
	if err := answers("java.io.IOException"); errors.Is(err, ErrRejected) || err.Error() != "yarn is not its renewer" {
		t.Error(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	if _, err = h.Renew(t.Context(), token.Token{Service: address}); err == nil ||
		!strings.Contains(err.Error(), "no server listens there") {
		t.Error(err)
	}
	if _, err = h.Renew(t.Context(), token.Token{Service: "ha-hdfs:prod"}); !errors.Is(err, ErrRejected) ||
		!strings.Contains(err.Error(), "set dfs.ha.namenodes.prod") {
		t.Error(err)
	}
}
