// SPDX-License-Identifier: Apache-2.0

package redis_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/statestore/redis"
)

func TestURLs(t *testing.T) {
	c, err := redis.ParseConfig(
		"redis-cluster://user:p%40ss@a:1,b:2,[::1]?prefix=fed&wait=1&wait_timeout=50ms&timeout=2s&max_wait=3s&tls=true",
	)
	if err != nil || c.Prefix != "fed" || c.Wait != 1 || c.WaitTimeout != 50*time.Millisecond ||
		c.Timeout != 2*time.Second ||
		c.MaxWait != 3*time.Second ||
		c.Flights != 16 {
		t.Fatalf("config is %+v, %v", c, err)
	}
	for _, good := range []string{"redis://localhost", "redis://:secret@h:6379/3", "rediss://h", "redis-sentinel://h,h2:26380/mymaster?db=2&sentinel_user=u&sentinel_password=p"} {
		if c, err := redis.ParseConfig(
			good,
		); err != nil || c.Prefix != "creel" || c.MaxBatch == 0 ||
			c.Timeout != time.Second {
			t.Errorf("%s: %+v, %v", good, c, err)
		}
	}
	for bad, why := range map[string]string{
		"":                                   "no scheme",
		"memory":                             "no scheme",
		"http://h":                           "unknown",
		"redis://":                           "empty host",
		"redis://h:0":                        "host:port",
		"redis://a,b":                        "several hosts",
		"redis://h/x":                        "not a number",
		"redis://h?prefix={x}":               "prefix",
		"redis://h?colour=red":               "colour",
		"redis://h?wait=some":                "wait",
		"redis://h?timeout=-1s":              "timeout",
		"redis-sentinel://h":                 "master",
		"redis-cluster://h/1":                "no databases",
		"redis-cluster://h?db=1":             "db",
		"redis://user:hunter2@h?colour=red":  "colour",
		"redis://user:hunter2@h:port":        "host:port",
		"redis-sentinel://h:1/m?db=minusone": "db",
	} {
		_, err := redis.ParseConfig(bad)
		if !errors.Is(err, creel.ErrInvalidRequest) || !strings.Contains(err.Error(), why) {
			t.Errorf("%q gave %v, want %q", bad, err, why)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error tells the password: %v", err)
		}
	}
}

func FuzzURL(t *testing.F) {
	f := propertytest.Fuzz(t)
	f.Add("redis-sentinel://u:p@h:1,[::1]:2/master?db=2&wait=1")
	f.Add("rediss://h?prefix=a:b")
	f.Fuzz(func(t *testing.T, url string) {
		c, err := redis.ParseConfig(url)
		if err == nil && (c.Prefix == "" || c.Timeout <= 0 || c.MaxBatch <= 0 || strings.ContainsAny(c.Prefix, "{}")) {
			t.Fatalf("%q gave %+v", url, c)
		}
	})
}

// Data that other programs, or a newer creel, may have left in Redis is refused or read, never half of it.
func FuzzRecords(t *testing.F) {
	f := propertytest.Fuzz(t)
	f.Add("sc-1 68f00000")
	f.Add("sc-1 68f00000 19a00000000")
	f.Add("1700000000000 1700000000000000 {\"queue\":\"root\",\"time\":\"2024-01-01T00:00:00Z\"}")
	f.Add("1700000000000000 0 secret")
	f.Add("17 1700000000000000 holder")
	f.Add("h application_1700000000000_0001")
	f.Add("p 17")
	f.Add("lq3x9k2w.1a")
	f.Add(`{"id":"sc-1","epoch":3}`)
	f.Fuzz(func(t *testing.T, text string) {
		if h, err := redis.ParseHome(
			text,
		); err == nil &&
			(h.Member() == "" || !strings.HasPrefix(text, string(h.Member())+" ")) {
			t.Fatalf("%q is home %q", text, h.Member())
		}
		if p, err := redis.ParsePolicy(text); err == nil && (p.Version <= 0 || p.Queue == "") {
			t.Fatalf("%q is policy %+v", text, p)
		}
		if k, err := redis.ParseKey("1", text); err == nil && len(k.Secret) == 0 {
			t.Fatalf("%q is key %+v", text, k)
		}
		if l, err := redis.ParseLease("l", text); err == nil && l.Token < 0 {
			t.Fatalf("%q is lease %+v", text, l)
		}
		if c := redis.ParseChange(text); c.Kind == "" {
			t.Fatalf("%q is no change", text)
		}
		if ts, n, ok := redis.Unlocate(text); ok && (ts <= 0 || n < 0) {
			t.Fatalf("%q is %d, %d", text, ts, n)
		}
		for _, epoch := range []string{"3", "", "x"} {
			is := min(1, len(text)) // no record: the member was removed
			if n, problems := redis.ParseMembers("sc-1", text, epoch, "1"); n+len(problems) != is {
				t.Fatalf("%q is %d members, problems %q", text, n, problems)
			}
		}
	})
}
