// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/units"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/router/operator"
	"github.com/creelrm/creel/router/rest"
	"github.com/spf13/cobra"
)

// moves requests a router's moves of waiting applications, current and next. If a member is named, the next moves are
// those of draining it by moving.
func (f *clientFlags) moves(ctx context.Context, drained creel.SubclusterID) (out operator.Moves, err error) {
	query := url.Values{}
	if drained != "" {
		query.Set("drain", string(drained))
	}
	_, err = f.call(ctx, http.MethodGet, "/api/v1/moves", query, nil, &out)
	return out, err
}

var chosenColumns = []column[rebalancer.ChosenMove]{
	{"APPLICATION", false, func(m rebalancer.ChosenMove) string { return m.Application.String() }},
	{"QUEUE", false, func(m rebalancer.ChosenMove) string { return string(m.Queue) }},
	{"FROM", false, func(m rebalancer.ChosenMove) string { return string(m.From) }},
	{"TO", false, func(m rebalancer.ChosenMove) string { return string(m.To) }},
	{"REASON", false, func(m rebalancer.ChosenMove) string { return m.Why }},
}

// printNext prints the next moves.
func printNext(c *cobra.Command, p printer, m operator.Moves) error {
	if err := printList(c.OutOrStdout(), p, m.Next, chosenColumns); err != nil || p.format != "table" {
		return err
	}
	for _, text := range m.Notes {
		fmt.Fprintln(c.OutOrStdout(), text)
	}
	return nil
}

// printMoves prints, below a plan, the next moves of waiting applications.
func printMoves(c *cobra.Command, f *clientFlags) error {
	m, err := f.moves(c.Context(), "")
	if err != nil || len(m.Next)+len(m.Under)+len(m.Notes) == 0 {
		return err
	}
	fmt.Fprintf(c.OutOrStdout(), "%d waiting applications are being moved; to be moved next:\n", len(m.Under))
	return printNext(c, f.printer, m)
}

// moveLine is a move as printed.
type moveLine struct {
	rebalancer.ChosenMove
	State string `json:"state"`
	By    string `json:"by"`
	At    string `json:"at"`
}

func moveLines(m operator.Moves) (out []moveLine) {
	for _, u := range m.Under {
		state := "is moved"
		switch {
		case u.Arrived:
			state = "has arrived"
		case u.GiveUp != "":
			state = "is given up: " + u.GiveUp
		}
		out = append(out, moveLine{u.ChosenMove, state, u.By, units.Age(u.AgeS) + " ago"})
	}
	for _, d := range m.Last {
		state := "moved"
		if !d.Moved {
			state = "stays: " + d.Because
		}
		out = append(out, moveLine{
			rebalancer.ChosenMove{Application: d.Application, From: d.From, To: d.To, Queue: d.Queue, Why: d.Why},
			state, d.By, d.At.Format(time.RFC3339),
		})
	}
	return out
}

func rebalancerMoves() *cobra.Command {
	var f clientFlags
	c := &cobra.Command{
		Use: "moves", Short: "list the moves of waiting applications: under way, and the last that are over",
		Args: noArguments,
	}
	f.register(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		m, err := f.moves(c.Context(), "")
		if err != nil {
			return err
		}
		return printList(c.OutOrStdout(), f.printer, moveLines(m), []column[moveLine]{
			{"APPLICATION", false, func(m moveLine) string { return m.Application.String() }},
			{"FROM", false, func(m moveLine) string { return string(m.From) }},
			{"TO", false, func(m moveLine) string { return string(m.To) }},
			{"STATE", false, func(m moveLine) string { return m.State }},
			{"WHEN", false, func(m moveLine) string { return m.At }},
			{"BY", false, func(m moveLine) string { return m.By }},
			{"QUEUE", true, func(m moveLine) string { return string(m.Queue) }},
			{"REASON", false, func(m moveLine) string { return m.Why }},
		})
	}
	return c
}

func rebalancerRollback() *cobra.Command {
	var f clientFlags
	c := &cobra.Command{
		Use:   "rollback [APPLICATION...]",
		Short: "undo moves of waiting applications: of those named, or of all within the last hour",
		Long: `A move in progress is cancelled. An application that has moved goes back if it still
waits: an application with a granted container is not moved. A move that was already
undone is repeated only if it is named; a move that undoes another one continues.`,
	}
	f.register(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		for _, a := range args {
			if _, err := creel.ParseApplicationID(a); err != nil {
				return usage(err)
			}
		}
		var out rest.UndoneDoc
		order := map[string]any{"applications": args}
		if _, err := f.call(c.Context(), http.MethodPost, "/api/v1/moves/undo", nil, order, &out); err != nil {
			return err
		}
		if err := printList(c.OutOrStdout(), f.printer, out.Moves, []column[operator.UndoResult]{
			{"APPLICATION", false, func(u operator.UndoResult) string { return u.Application.String() }},
			{"RESULT", false, func(u operator.UndoResult) string { return u.Result }},
		}); err != nil {
			return err
		}
		if slices.ContainsFunc(out.Moves, func(u operator.UndoResult) bool { return u.Result == operator.NoMove }) {
			return &exitError{exitNotFound, errSilent}
		}
		return nil
	}
	return c
}
