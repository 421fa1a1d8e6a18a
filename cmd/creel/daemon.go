// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/daemon"
	"github.com/creelrm/creel/app/daemon/logs"
	"github.com/creelrm/creel/app/daemon/role"
	"github.com/creelrm/creel/app/daemon/tracing"
	"github.com/creelrm/creel/internal/hugepages"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/statestore"
)

// daemonFlags are the flags of every daemon.
type daemonFlags struct {
	confFlags
	hugePages bool // use pages of 2 MiB for the heap
	readyFile string
}

func (f *daemonFlags) register(c *cobra.Command) {
	f.confFlags.register(c)
	fl := c.Flags()
	fl.BoolVar(&f.hugePages, "huge-pages", false,
		"ask the kernel for huge pages for the heap: an eighth more decisions a second in a large cluster")
	fl.StringVar(&f.readyFile, "ready-file", "", "write `FILE` once serving")
	f.setting(fl, "drain-timeout", "creel.drain-timeout", "`TIME` to finish requests in flight after the first signal")
}

// setting adds a flag that sets a setting, over files and -D.
func (f *confFlags) setting(fl *pflag.FlagSet, name, key, usage string) {
	if row, ok := settings.Find(key); ok && row.Default != "" {
		usage += " (default " + row.Default + ")"
	}
	fl.Func(name, usage, func(value string) error {
		f.flags = append(f.flags, settings.Flag{Name: "--" + name, Key: key, Value: value})
		return nil
	})
}

// takeOver makes --take-over set creel.membership.take-over.
func (f *daemonFlags) takeOver(fl *pflag.FlagSet) {
	fl.BoolFunc(
		"take-over",
		"take the name of a member that is alive, which then is none any more",
		func(value string) error {
			f.flags = append(
				f.flags,
				settings.Flag{Name: "--take-over", Key: "creel.membership.take-over", Value: value},
			)
			return nil
		},
	)
}

// acceptEmpty makes --accept-empty set creel.membership.accept-empty.
func (f *daemonFlags) acceptEmpty(fl *pflag.FlagSet) {
	fl.BoolFunc(
		"accept-empty",
		"start on an empty journal although the store has applications of this member; their state is lost",
		func(value string) error {
			f.flags = append(
				f.flags,
				settings.Flag{Name: "--accept-empty", Key: "creel.membership.accept-empty", Value: value},
			)
			return nil
		},
	)
}

// run runs a service in the same way for all daemons.
func (f *daemonFlags) run(ctx context.Context, s *settings.Settings, d *daemon.Service, array bool) error {
	if err := role.AddProfiles(d, s); err != nil {
		return closed(d, err)
	}
	defer daemon.Ballast()()
	if f.hugePages {
		stop, err := hugepages.Keep()
		if err != nil {
			return closed(d, err)
		}
		defer stop()
	}
	reloadLogLevel(s, d)
	return daemon.Serve(ctx, d, daemon.Options{
		ReadyFile: f.readyFile,
		Array:     array,
		Drain:     s.Duration("creel.drain-timeout"),
	})
}

// reloadLogLevel makes SIGHUP read creel.log.level before the service's own reload.
func reloadLogLevel(s *settings.Settings, d *daemon.Service) {
	rest := d.Reload
	d.Reload = func(ctx context.Context) error {
		fresh, err := s.Reload()
		if err != nil {
			return err
		}
		if err := logs.SetLevel(fresh.String("creel.log.level")); err != nil {
			return err
		}
		if rest == nil {
			return nil
		}
		return rest(ctx)
	}
}

// closed releases a service that err prevents from starting.
func closed(d *daemon.Service, err error) error {
	if closing := d.Close(); closing != nil {
		slog.Warn("close", "error", closing)
	}
	return err
}

// setUpLogs creates the log by its settings, and writes the lines of the start.
func setUpLogs(s *settings.Settings, roles ...settings.Role) error {
	role := ""
	if len(roles) == 1 {
		role = string(roles[0])
	}
	if err := logs.SetUp(logs.Settings(s, role)); err != nil {
		return err
	}
	logged := map[string]bool{}
	for _, role := range roles {
		for _, w := range s.WarningsFor(role) {
			if !logged[w] {
				slog.Warn("settings", "warning", w)
			}
			logged[w] = true
		}
	}
	return nil
}

// daemonCommand makes the command of one daemon. build assembles the daemon from its settings.
func daemonCommand(
	use, short string,
	f *daemonFlags,
	build func(ctx context.Context, s *settings.Settings) (*daemon.Service, error),
) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short, GroupID: "daemon", Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := f.load()
			if err != nil {
				return err
			}
			if err := setUpLogs(s, settings.Role(use)); err != nil {
				return err
			}
			flush, err := tracing.SetUp(c.Context(), s, use)
			if err != nil {
				return err
			}
			defer flush()
			d, err := build(c.Context(), s)
			if err != nil {
				return err
			}
			return f.run(c.Context(), s, d, false)
		},
	}
	f.register(c)
	return c
}

// overStore opens the state store and assembles a daemon over it. The daemon closes the store at its end.
func overStore(
	ctx context.Context,
	s *settings.Settings,
	build func(statestore.Store) (*daemon.Service, error),
) (*daemon.Service, error) {
	if err := requireStore(s); err != nil {
		return nil, err
	}
	store, closeStore, err := role.OpenStore(ctx, s)
	if err != nil {
		return nil, err
	}
	d, err := build(store)
	if err != nil {
		if closing := closeStore(); closing != nil {
			slog.Warn("close", "error", closing)
		}
		return nil, err
	}
	d.OnCloseLast(closeStore)
	return d, nil
}

// overStores reports whether daemons of a role need a state store.
func overStores(r settings.Role) bool {
	return slices.Contains([]settings.Role{settings.Router, settings.Proxy, settings.Rebalancer, settings.Agent}, r)
}

// requireStore rejects a daemon without a named store: in a store of its own it would be alone.
func requireStore(s *settings.Settings) error {
	if v, ok := s.Lookup("creel.store.url"); ok && v.Origin.Source != "default" {
		return nil
	}
	return usage(&creel.Error{
		What: "no state store is named", Why: "a daemon with a store of its own is alone in its federation",
		Try: "--store redis://HOST:PORT, zk://HOST:PORT or mysql://USER@HOST, $CREEL_STORE or creel.store.url; --store memory for one process alone",
	})
}

// requireStoreFlag adds --store to a daemon that needs a store.
func (f *confFlags) requireStoreFlag(fl *pflag.FlagSet) {
	fl.Func("store", "state store `URL`: memory, redis://, rediss://, redis-sentinel://, redis-cluster://, zk://, mysql:// "+
		"(default $CREEL_STORE, then creel.store.url; required)", func(value string) error {
		f.flags = append(f.flags, settings.Flag{Name: "--store", Key: "creel.store.url", Value: value})
		return nil
	})
}

func routerCommand() *cobra.Command {
	var f daemonFlags
	c := daemonCommand("router", "a stateless router: many subclusters in the shape of one ResourceManager", &f,
		func(ctx context.Context, s *settings.Settings) (*daemon.Service, error) {
			conf, err := role.RouterSettings(s)
			if err != nil {
				return nil, err
			}
			return overStore(ctx, s, func(store statestore.Store) (*daemon.Service, error) {
				r, err := role.NewRouter(conf, store)
				if err != nil {
					return nil, err
				}
				return &r.Service, nil
			})
		})
	f.requireStoreFlag(c.Flags())
	return c
}

func proxyCommand() *cobra.Command {
	var f daemonFlags
	c := daemonCommand("proxy", "an AM-RM proxy: spreads an AM's asks over subclusters", &f,
		func(ctx context.Context, s *settings.Settings) (*daemon.Service, error) {
			conf, err := role.ProxySettings(s)
			if err != nil {
				return nil, err
			}
			return overStore(ctx, s, func(store statestore.Store) (*daemon.Service, error) {
				p, err := role.NewProxy(conf, store)
				if err != nil {
					return nil, err
				}
				return &p.Service, nil
			})
		})
	f.requireStoreFlag(c.Flags())
	return c
}

func agentCommand() *cobra.Command {
	var f daemonFlags
	c := daemonCommand("agent", "bring a Hadoop ResourceManager into the federation", &f,
		func(ctx context.Context, s *settings.Settings) (*daemon.Service, error) {
			conf, err := role.AgentSettings(s)
			if err != nil {
				return nil, err
			}
			return overStore(ctx, s, func(store statestore.Store) (*daemon.Service, error) {
				return role.NewAgent(conf, store), nil
			})
		})
	f.requireStoreFlag(c.Flags())
	f.setting(c.Flags(), "subcluster", "creel.subcluster.id", "the member's `ID`")
	f.takeOver(c.Flags())
	return c
}

func rmCommand() *cobra.Command {
	var f daemonFlags
	c := daemonCommand("rm", "a ResourceManager, alone or as a member of a federation", &f,
		func(ctx context.Context, s *settings.Settings) (*daemon.Service, error) {
			build := func(store statestore.Store) (*daemon.Service, error) {
				conf, err := role.RMSettings(s, store)
				if err != nil {
					return nil, err
				}
				if conf.Pair != nil {
					p, err := role.NewRMPair(conf)
					if err != nil {
						return nil, err
					}
					return &p.Service, nil
				}
				r, err := role.NewRM(conf)
				if err != nil {
					return nil, err
				}
				r.WarnOfVolatileJournal(slog.Default())
				return &r.Service, nil
			}
			if !role.Member(s) {
				return build(nil)
			}
			return overStore(ctx, s, build)
		})
	c.AddCommand(repairCommand(), exportCommand(), importCommand(), forgetCommand(), formatCommand())
	fl := c.Flags()
	f.setting(fl, "data", "creel.rm.data", "keep the journal in `DIR`; without it nothing survives a restart")
	f.setting(fl, "subcluster", "creel.subcluster.id", "join the federation as `ID`")
	f.takeOver(fl)
	f.acceptEmpty(fl)
	f.setting(fl, "store", "creel.store.url", "state store `URL` of the federation to join")
	return c
}

func nmCommand() *cobra.Command {
	var f daemonFlags
	var first int
	c := daemonCommand("nm", "simulated NodeManagers, thousands in one process", &f,
		func(_ context.Context, s *settings.Settings) (*daemon.Service, error) {
			conf, err := role.NodesSettings(s)
			if err != nil {
				return nil, err
			}
			conf.Farm.First = first
			n, err := role.NewNodes(conf)
			if err != nil {
				return nil, err
			}
			return &n.Service, nil
		})
	f.setting(c.Flags(), "simulate", "creel.nm.simulate", "simulate `N` nodes")
	c.Flags().IntVar(&first, "first", 0, "number of the first node, so that processes beside each other differ")
	return c
}
