// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/creelrm/creel"
)

// silence is a call without an answer.
type silence struct{ sent bool }

func (s silence) Error() string     { return fmt.Sprintf("no answer, sent: %v", s.sent) }
func (s silence) MayBeServed() bool { return s.sent }

var errRefused = errors.New("the queue does not exist") // an answer

// outcomes are the hosts' actions, by a word.
var outcomes = map[string]error{
	"ok":      nil,
	"refuses": errRefused,
	"standby": fmt.Errorf("StandbyException: %w", creel.ErrStandby),
	"down":    silence{},
	"dies":    silence{sent: true},
	"hangs":   nil, // until the call's time is over
}

// Each case is a few calls one after the other: each host's action, then the hosts asked and the result. A read is
// repeated where it may have been served, a write is not.
func TestWhichHostIsAsked(t *testing.T) {
	for _, c := range []struct{ name, script string }{
		{"the one that answers is kept to", `
			read ok,ok -> 0: ok
			read ok,ok -> 0: ok`},
		{"a standby is passed over once", `
			write standby,ok -> 0 1: ok
			write standby,ok -> 1: ok`},
		{"one that is down is passed over once", `
			write down,ok -> 0 1: ok
			write down,ok -> 1: ok`},
		{"an exception is an answer", `
			write standby,refuses -> 0 1: refuses
			write refuses,refuses -> 1: refuses`},
		{"they change places and back", `
			read ok,standby -> 0: ok
			read standby,ok -> 0 1: ok
			read ok,standby -> 1 0: ok
			read ok,standby -> 0: ok`},
		{"a write that may have been served is not repeated, and the next call begins elsewhere", `
			write dies,ok -> 0: dies
			write down,ok -> 1: ok`},
		{"a read is repeated", `
			read dies,ok -> 0 1: ok
			read down,ok -> 1: ok`},
		{"one that is silent costs a call its time, not the next one", `
			read hangs,ok -> 0: hangs
			read hangs,ok -> 1: ok`},
		{"a slow answer alone: the standby sends us back", `
			read hangs,standby -> 0: hangs
			read ok,standby -> 1 0: ok
			read ok,standby -> 0: ok`},
		{"a caller who goes away proves nothing", `
			gone hangs,ok -> 0: hangs
			read ok,ok -> 0: ok`},
		{"with none active a standby's word is told, whichever came first, and each is asked once", `
			write standby,down -> 0 1: standby
			write down,standby -> 0 1: standby
			write down,down -> 0 1: down
			read down,dies -> 0 1: dies
			read dies,down -> 0 1: dies`},
		{"three", `
			read standby,down,ok -> 0 1 2: ok
			read standby,down,ok -> 2: ok
			read ok,down,standby -> 2 0: ok`},
		{"a single one is as it is", `
			read standby -> 0: standby
			read dies -> 0: dies
			read ok -> 0: ok`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var p Pair
			for line := range strings.Lines(strings.TrimSpace(c.script)) {
				line = strings.TrimSpace(line)
				kind, rest, _ := strings.Cut(line, " ")
				does, _, _ := strings.Cut(rest, " -> ")
				if got := fmt.Sprintf("%s %s -> %s", kind, does, ask(&p, kind, strings.Split(does, ","))); got != line {
					t.Errorf("%s\nwant %s", got, line)
				}
			}
		})
	}
}

// ending is a context that ends on demand.
type ending struct {
	context.Context
	err error
}

func (e *ending) Err() error { return e.err }

// ask makes one call and records the hosts asked and the result.
func ask(p *Pair, kind string, does []string) string {
	ctx := &ending{Context: context.Background()}
	hosts := make([]int, len(does))
	for i := range hosts {
		hosts[i] = i
	}
	var asked []string
	err := Each(ctx, p, hosts, kind == "read", func(host int) error {
		asked = append(asked, fmt.Sprint(host))
		if does[host] != "hangs" {
			return outcomes[does[host]]
		}
		ctx.err = map[bool]error{true: context.Canceled, false: context.DeadlineExceeded}[kind == "gone"]
		return ctx.err
	})
	came := "ok"
	for word, is := range outcomes {
		if err != nil && err == is {
			came = word
		}
	}
	if ctx.err != nil && err == ctx.err {
		came = "hangs"
	}
	return strings.Join(asked, " ") + ": " + came
}

// The late result of a call that began with the earlier host does not revert the choice that another call has made
// meanwhile.
func TestLateAnswerDoesNotFailBack(t *testing.T) {
	for _, late := range []string{"ok", "refuses", "dies"} {
		var p Pair
		hosts := []string{"a", "b"}
		err := Each(t.Context(), &p, hosts, false, func(at string) error {
			if at == "b" {
				t.Error("a write that may have been served was repeated")
			}
			if err := Each(t.Context(), &p, hosts, false, func(at string) error { // another call finds b
				return outcomes[map[string]string{"a": "standby", "b": "ok"}[at]]
			}); err != nil {
				t.Error(err)
			}
			return outcomes[late]
		})
		if err != outcomes[late] || p.First(hosts) != "b" {
			t.Errorf("%s: %v, the next call begins with %s", late, err, p.First(hosts))
		}
	}
}

func TestHostsOfARecord(t *testing.T) {
	if got := Hosts("a:1,b:2"); !slices.Equal(got, []string{"a:1", "b:2"}) {
		t.Error(got)
	}
	if Hosts("") != nil || new(Pair).First(nil) != "" {
		t.Error("no address has a host")
	}
	if err := Each(t.Context(), new(Pair), nil, true, func(string) error { return nil }); err == nil {
		t.Error("a call to nobody was answered")
	}
}
