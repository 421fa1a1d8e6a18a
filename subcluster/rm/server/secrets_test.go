// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/subcluster/rm"
)

func TestClientTokensFitTheirAM(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	conf := Config{Machine: rm.Defaults(), KeyRoll: 24 * time.Hour, Secure: &Secure{}}
	s := Clients{&Server{cfg: conf, secrets: newSecrets(now, conf)}}
	first := creel.AttemptID{Application: creel.ApplicationID{ClusterTimestamp: 1, ID: 1}, Attempt: 1}
	second := first
	second.Attempt = 2

	held := token.FromProto(s.Token(first, "alice"))
	id, err := token.ParseClientToAM(held.Identifier)
	if err != nil || id.Attempt != first || id.Client != "alice" || held.Kind != token.KindClientToAM {
		t.Errorf("the token is %+v, %v", id, err)
	}
	fits := func(key []byte) bool { return token.Key{Secret: key}.Verify(held.Identifier, held.Password) }
	if !fits(s.Key(first)) || fits(s.Key(second)) {
		t.Error("the token fits the wrong attempt")
	}

	// The AM continues over a restart, with the key that it received.
	kept, err := s.secrets.value()
	if err != nil {
		t.Fatal(err)
	}
	again := Clients{&Server{cfg: conf, secrets: newSecrets(now, conf)}}
	if bytes.Equal(again.Key(first), s.Key(first)) {
		t.Error("two ResourceManagers have the same key")
	}
	if err := again.secrets.restore(conf, now, kept); err != nil || !fits(again.Key(first)) {
		t.Errorf("after a restart the key is another one: %v", err)
	}

	s.cfg.Secure = nil
	if s.Key(first) != nil || s.Token(first, "alice") != nil {
		t.Error("an insecure ResourceManager has keys of clients")
	}
}
