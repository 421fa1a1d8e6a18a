// SPDX-License-Identifier: Apache-2.0

package rpc_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/statestore"
)

// makeForeign has a member share no keys, as a Hadoop ResourceManager.
func (f *federation) makeForeign(id creel.SubclusterID) {
	f.t.Helper()
	f.rms[id].foreign, f.rms[id].cfg.Dir = true, f.t.TempDir()
	f.rms[id].stopRM()
	f.startRM(id)
	f.store = statestore.NewMemory(statestore.NewState("test", nil), time.Now)
	for _, other := range f.ids {
		if other != id {
			f.rms[other].stopRM()
			f.startRM(other)
		}
	}
	f.look()
}

// The proxy knows no key of such a home: the AM logs in at its home through the proxy,
// and still gets containers of the other member.
func TestAnAMLogsInAtAHomeThatSharesNoKeys(t *testing.T) {
	f := found(t, byHeadroom, 1, 1)
	f.makeForeign("sc-a")
	at := f.proxy()
	m := f.submit("sc-a", nil)
	if _, _, err := f.store.Claim(t.Context(), m.app, "sc-a", nil); err != nil {
		t.Fatal(err)
	}
	m.connect(at.address)
	m.register()
	m.ask(1, 12)
	f.until("12 containers of both members run", func() bool {
		m.heartbeat()
		return len(m.has) == 12
	})
	epochs := map[int64]int{}
	for id := range m.has {
		epochs[id.Epoch()/1000]++
	}
	if len(epochs) != 2 {
		t.Errorf("containers by member: %v, want of two", epochs)
	}

	// Home is restarted: its connection dies, the AM's with it, and its client logs in again.
	f.rms["sc-a"].stopRM()
	f.startRM("sc-a")
	m.ask(1, 1)
	f.until("the AM has gone on", func() bool {
		m.heartbeat()
		return len(m.has) == 13
	})
	if m.again != 0 {
		t.Errorf("the AM had to register %d times more; its proxy does that", m.again)
	}
	m.finish()
}

func TestWhoCannotLogInAtHomeCannotLogInAtTheProxy(t *testing.T) {
	f := found(t, byHeadroom, 1, 1)
	f.makeForeign("sc-a")
	at := f.proxy()
	m := f.submit("sc-a", nil)
	register := func(password []byte) error {
		client := hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})
		defer client.Close()
		credential := *m.cred
		credential.Password = password
		am := yarnrpc.NewApplicationMasterProtocolClient(client, at.address, hrpc.Login{Credential: &credential})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := am.RegisterApplicationMaster(ctx, &pb.RegisterApplicationMasterRequestProto{Host: proto.String("am")})
		return err
	}
	if err := register(m.cred.Password); !errors.Is(err, creel.ErrInvalidToken) {
		t.Errorf("an application without a claim: %v, want an invalid token", err)
	}
	if _, _, err := f.store.Claim(t.Context(), m.app, "sc-a", nil); err != nil {
		t.Fatal(err)
	}
	var refused *hrpc.RemoteError
	if err := register([]byte("not the password")); !errors.As(err, &refused) || !refused.Fatal {
		t.Errorf("with a wrong password: %v, want home's refusal", err)
	}
	f.rms["sc-a"].stopRM()
	if err := register(m.cred.Password); !errors.Is(err, creel.ErrStandby) {
		t.Errorf("with home away: %v, want that it is tried again", err)
	}
	f.startRM("sc-a")
	if err := register(m.cred.Password); err != nil {
		t.Errorf("with home back: %v", err)
	}
}
