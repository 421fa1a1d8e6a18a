// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster/login"
)

// A router that starts copies the history of others. It asks at most copiedRouters of them, since one alone may have
// started a moment ago, or have gaps. Without an answer it begins with an empty history. While the store does not
// answer, it asks again for historyStoreWait.
const (
	copiedRouters    = 3
	historyCopyTime  = 10 * time.Second // of one copy
	historyCopyBytes = 64 << 20         // of one copy, after decompression
	historyStoreWait = time.Minute
)

// historyCopier copies the history of other routers after the start.
type historyCopier struct {
	store  statestore.Daemons
	server *server.Server
	own    string // this router's web address, as its record has it
	user   string // the user of this router's calls
	client *http.Client
	log    *slog.Logger
}

// addHistoryCopier adds the task that copies the history of other routers. web is this router's own address.
func (r *Router) addHistoryCopier(p *routerParts, web string) {
	as := login.Login{User: p.conf.Remote.User, Ticket: p.conf.Remote.Ticket}
	transport, jar := as.Web(&http.Transport{DisableKeepAlives: true, DialTLSContext: p.conf.Remote.DialTLS})
	c := &historyCopier{
		store: p.store, server: r.Server, user: p.conf.Remote.User, log: p.conf.Log,
		client: &http.Client{
			Transport: transport, Jar: jar,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	if host, err := hostOf(""); err == nil {
		c.own = fromElsewhere(web, host)
	}
	r.Add("history of other routers", c.run)
}

func (p *historyCopier) run(ctx context.Context) error {
	addresses, err := p.routers(ctx)
	for began := time.Now(); err != nil && time.Since(began) < historyStoreWait; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
			addresses, err = p.routers(ctx)
		}
	}
	if err != nil {
		p.log.Warn("failed to list the other routers: the history begins now", "error", err)
	}
	copies := 0
	for _, address := range addresses {
		if copies == copiedRouters || ctx.Err() != nil {
			break
		}
		subjects, err := p.copy(ctx, address)
		if err != nil {
			p.log.Info("failed to copy the history of a router",
				"router", address.Host, "subjects", subjects, "error", err)
			continue
		}
		copies++
		p.log.Info("history copied", "router", address.Host, "subjects", subjects)
	}
	<-ctx.Done()
	return nil
}

// routers returns the web addresses of other routers, in random order: routers that start together ask different ones.
// Those that are ready come first.
func (p *historyCopier) routers(ctx context.Context) (addresses []url.URL, err error) {
	ctx, cancel := context.WithTimeout(ctx, recordTime)
	defer cancel()
	var later []url.URL
	for cursor := ""; ; {
		page, next, err := p.store.Daemons(ctx, cursor, statestore.MaxPage)
		if err != nil {
			return nil, err
		}
		for _, d := range page {
			at := url.URL{Scheme: d.Scheme(), Host: d.Addresses["web"]}
			switch {
			case d.Kind != "router" || at.Host == "" || at.Host == p.own:
			case d.NotReady != "":
				later = append(later, at)
			default:
				addresses = append(addresses, at)
			}
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	for _, list := range [][]url.URL{addresses, later} {
		rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	addresses = append(addresses, later...)
	return addresses[:min(len(addresses), 2*copiedRouters)], nil
}

// copy copies the history of one router, and returns the number of subjects.
func (p *historyCopier) copy(ctx context.Context, at url.URL) (subjects int, err error) {
	ctx, cancel := context.WithTimeout(ctx, historyCopyTime)
	defer cancel()
	at.Path, at.RawQuery = "/api/v1/history/copy", url.Values{"user.name": {p.user}}.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return 0, err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return 0, err
	}
	came := time.Now() // ages in the copy are from when it was sent
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("it answered %s", resp.Status)
	}
	return server.MergeHistory(p.server, came, io.LimitReader(resp.Body, historyCopyBytes))
}
