// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/renewal"
)

// cancelled counts the tokens that a ResourceManager cancels.
type cancelled struct{ n int }

func (*cancelled) Renew(context.Context, token.Token) (time.Time, error) {
	return time.Now().Add(time.Hour), nil
}

func (c *cancelled) Cancel(context.Context, token.Token) error { c.n++; return nil }

// The tokens of an application that has moved to another subcluster are needed there.
func TestOnlyEndOfApplicationCancelsItsTokens(t *testing.T) {
	id := creel.ApplicationID{ClusterTimestamp: 1, ID: 1}
	left := rm.SaveApp{Record: rm.AppRecord{Submission: rm.Submission{ID: id}}, Deleted: true}
	for _, c := range []struct {
		name  string
		after rm.Action
		want  int
	}{{"moved", left, 0}, {"ended", rm.AppEnded{App: id}, 1}} {
		synctest.Test(t, func(t *testing.T) {
			calls := &cancelled{}
			s := &Server{secrets: newSecrets(time.Now(), Config{Machine: rm.Defaults(), KeyRoll: 24 * time.Hour})}
			s.Renewer = renewal.New(map[string]renewal.Server{renewal.KindHDFS: calls}, slog.New(slog.DiscardHandler))
			ctx, stop := context.WithCancel(t.Context())
			go s.Renewer.Run(ctx)
			// The identifier has a version, an owner and a renewer.
			of := token.AppendText(token.AppendText([]byte{0}, "alice"), "yarn")
			held := token.Token{Kind: renewal.KindHDFS, Service: "nn:8020", Identifier: of}
			s.Renewer.Hold(id, token.Credentials{}.With("nn", held).Append(nil), true)
			synctest.Wait()
			if s.Renewer.Renewed() != 1 {
				t.Error("the token was not renewed")
			}
			s.perform(c.after)
			synctest.Wait()
			if calls.n != c.want || s.Renewer.Held() != 0 {
				t.Errorf("%s: %d cancelled, want %d; %d held", c.name, calls.n, c.want, s.Renewer.Held())
			}
			stop()
			synctest.Wait()
		})
	}
}
