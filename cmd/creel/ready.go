// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/creelrm/creel/internal/network"
	"github.com/spf13/cobra"
)

// readyCommand checks whether a daemon serves. Health checks use it where no shell and no curl exist, such as in
// creel's container image.
func readyCommand() *cobra.Command {
	var wait time.Duration
	c := &cobra.Command{
		Use:     "ready URL",
		Short:   "ask a daemon's web address whether it is ready",
		GroupID: "daemon",
		Args:    exactly(1, "the URL of a daemon"),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(c.Context(), max(wait, 2*time.Second))
			defer cancel()
			for {
				err := askReady(ctx, args[0])
				if exitCode(err) == exitUsage {
					return err
				}
				if err == nil {
					fmt.Fprintln(c.OutOrStdout(), "ready")
					return nil
				}
				if wait == 0 {
					return &exitError{exitUnreachable, err}
				}
				select {
				case <-ctx.Done():
					return &exitError{exitUnreachable, err}
				case <-time.After(100 * time.Millisecond):
				}
			}
		},
	}
	c.Flags().DurationVar(&wait, "wait", 0, "ask until it is ready, at most this long")
	return c
}

func askReady(ctx context.Context, url string) error {
	if !strings.Contains(url, "://") {
		url = "http://" + url
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(url, "/")+"/readyz?verbose", nil)
	if err != nil {
		return usage(fmt.Errorf("%q is no URL such as http://127.0.0.1:8089: %w", url, errors.Unwrap(err)))
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("%s cannot be reached: %w", url, network.InWords(err))
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s: %s", url, resp.Status, strings.TrimSpace(string(text)))
	}
	return nil
}
