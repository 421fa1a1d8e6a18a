// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm"
)

// logsOf returns a node's page for a container's logs.
func logsOf(h *Handler, nodeHTTP string, id creel.ContainerID, user string) string {
	return h.s.Cluster().LogURL(nodeHTTP, id, user)
}

// inside rejects callers without view access to an application.
func (h *appsAPI) inside(m *rm.Machine, r *http.Request, a *rm.AppView) error {
	if who := h.caller(r); !h.s.MayView(m, who, a) {
		return &refusal{
			http.StatusForbidden,
			classForbidden,
			cause + "User " + who.User + " does not have privilege to see this application " + a.ID.String(),
		}
	}
	return nil
}

// attempts lists an application's attempts, oldest first.
func (h *appsAPI) attempts(w http.ResponseWriter, r *http.Request) {
	id, err := appOf(r)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	var app rm.AppView
	var list []rm.AttemptView
	err = h.ask(r, func(m *rm.Machine, _ time.Time) error {
		var ok bool
		if app, ok = m.App(id); !ok {
			return noApp(id)
		}
		list = m.Attempts(id)
		return h.inside(m, r, &app)
	})
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	h.reply(w, r, http.StatusOK, "appAttempts", rooted, func(w *writer) {
		w.List("appAttempt", len(list), func(w *writer, i int) {
			a := &list[i]
			container, node, logs := "", "", ""
			if !a.AM.IsZero() {
				container, node, logs = a.AM.String(), a.AMNode.String(), logsOf(h.Handler,
					a.AMHTTP,
					a.AM,
					app.User,
				)
			}
			w.Int("id", int64(a.ID.Attempt))
			w.Int("startTime", millis(a.Started))
			w.Int("finishedTime", millis(a.Finished))
			w.Text("containerId", container)
			w.Text("nodeHttpAddress", a.AMHTTP)
			w.Text("nodeId", node)
			w.Text("logsLink", logs)
			w.Text("blacklistedNodes", strings.Join(a.Blacklist, ","))
			if !a.AM.IsZero() && !a.State.Ended() {
				w.Text("nodesBlacklistedBySystem", "")
			}
			w.Text("appAttemptId", a.ID.String())
			w.Text("exportPorts", "")
			w.Text("appAttemptState", a.Internal)
		})
	})
}

// attemptOf reads the attempt of a path.
func attemptOf(r *http.Request) (creel.AttemptID, error) {
	if _, err := appOf(r); err != nil {
		return creel.AttemptID{}, err
	}
	text := param(r, "attemptid")
	id, err := creel.ParseAttemptID(text)
	if err != nil {
		return id, badRequest(classIllegal + ": Invalid AppAttemptId prefix: " + text)
	}
	return id, nil
}

// findAttempt looks up an attempt of the application in the path.
func (h *appsAPI) findAttempt(m *rm.Machine, r *http.Request) (app rm.AppView, a rm.AttemptView, err error) {
	id, err := attemptOf(r)
	if err != nil {
		return app, a, err
	}
	of, _ := appOf(r) // attemptOf has already checked it
	app, ok := m.App(of)
	if !ok {
		return app, a, noApp(of)
	}
	if a, ok = m.Attempt(id); !ok || id.Application != of {
		return app, a, &refusal{
			http.StatusNotFound,
			classNotFound,
			fmt.Sprintf(
				"org.apache.hadoop.yarn.exceptions.ApplicationAttemptNotFoundException: ApplicationAttempt with id '%s' doesn't exist in RM.",
				id,
			),
		}
	}
	return app, a, h.inside(m, r, &app)
}

// attempt writes one attempt in the wording of reports.
func (h *appsAPI) attempt(w http.ResponseWriter, r *http.Request) {
	var app rm.AppView
	var a rm.AttemptView
	err := h.ask(r, func(m *rm.Machine, _ time.Time) (err error) {
		app, a, err = h.findAttempt(m, r)
		return err
	})
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	host, port := cmp.Or(a.Host, "N/A"), a.Port
	if a.Host == "" {
		port = -1
	}
	h.reply(w, r, http.StatusOK, "appAttempt", mapped, func(w *writer) {
		w.Text("appAttemptId", a.ID.String())
		w.Text("host", host)
		w.Int("rpcPort", int64(port))
		tracking := cmp.Or(a.TrackingURL, "N/A")
		if !app.Unmanaged {
			links := h.s.Cluster()
			links.Web = h.web(r)
			tracking = links.ProxyURL(app.ID)
		}
		w.Text("trackingUrl", tracking)
		w.Text("originalTrackingUrl", cmp.Or(a.TrackingURL, "N/A"))
		w.Text("diagnosticsInfo", cmp.Or(a.Diagnostics, onItsWay(&a)))
		w.Text("appAttemptState", a.State.String())
		if !a.AM.IsZero() {
			w.Text("amContainerId", a.AM.String())
		}
		w.Int("startedTime", millis(a.Started))
		w.Int("finishedTime", millis(a.Finished))
	})
}

// web returns this handler's own address, as used in links.
func (h *appsAPI) web(r *http.Request) string { return r.Host }

// containers lists an attempt's running containers.
func (h *appsAPI) containers(w http.ResponseWriter, r *http.Request) {
	var app rm.AppView
	var list []rm.ContainerView
	var at time.Time
	err := h.ask(r, func(m *rm.Machine, now time.Time) error {
		var a rm.AttemptView
		var err error
		app, a, err = h.findAttempt(m, r)
		list, at = m.Containers(a.ID), now
		return err
	})
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	h.reply(w, r, http.StatusOK, "containers", mapped, func(w *writer) {
		w.List("container", len(list), func(w *writer, i int) { h.containerFields(w, &list[i], app.User, at) })
	})
}

func (h *appsAPI) container(w http.ResponseWriter, r *http.Request) {
	var app rm.AppView
	var c rm.ContainerView
	var at time.Time
	err := h.ask(r, func(m *rm.Machine, now time.Time) error {
		var a rm.AttemptView
		var err error
		if app, a, err = h.findAttempt(m, r); err != nil {
			return err
		}
		text := param(r, "containerid")
		id, err := creel.ParseContainerID(text)
		if err != nil {
			return badRequest(classIllegal + ": Invalid ContainerId prefix: " + text)
		}
		var ok bool
		if c, ok = m.Container(id); !ok || id.Attempt != a.ID {
			return &refusal{
				http.StatusNotFound,
				classNotFound,
				fmt.Sprintf(
					"org.apache.hadoop.yarn.exceptions.ContainerNotFoundException: Container with id '%s' doesn't exist in RM.",
					id,
				),
			}
		}
		at = now
		return nil
	})
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	h.reply(w, r, http.StatusOK, "container", mapped, func(w *writer) { h.containerFields(w, &c, app.User, at) })
}

func (h *appsAPI) containerFields(w *writer, c *rm.ContainerView, user string, now time.Time) {
	state := creel.ContainerRunning // the scheduler lists only running containers
	w.Text("containerId", c.ID.String())
	w.Int("allocatedMB", c.Resource.MemoryMB)
	w.Int("allocatedVCores", c.Resource.VCores)
	w.Text("assignedNodeId", c.Node.String())
	w.Int("priority", int64(c.Priority))
	w.Int("startedTime", millis(c.Created))
	w.Int("finishedTime", 0)
	w.Int("elapsedTime", max(now.Sub(c.Created).Milliseconds(), -1))
	w.Text("logUrl", logsOf(h.Handler, c.HTTPAddress, c.ID, user))
	w.Int("containerExitStatus", 0)
	w.Text("containerState", state.String())
	w.Text("nodeHttpAddress", h.s.Cluster().URL(c.HTTPAddress))
	w.Text("nodeId", c.Node.String())
	names := h.resourceNames()
	w.Map("allocatedResources", len(names), func(i int) (string, string) {
		return names[i], strconv.FormatInt(h.inUnit(names[i], c.Resource.Get(names[i])), 10)
	})
	w.Text("exposedPorts", "")
}

// ask is read with an error of its own.
func (h *Handler) ask(r *http.Request, f func(m *rm.Machine, now time.Time) error) error {
	var result error
	if err := h.read(r.Context(), func(m *rm.Machine, now time.Time) { result = f(m, now) }); err != nil {
		return err
	}
	return result
}
