// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/webdoc"
	"github.com/creelrm/creel/subcluster/rm/queueconf"
	"github.com/creelrm/creel/subcluster/rm/server"
	"github.com/go-chi/chi/v5"
)

// mountQueuesConf mounts the calls that change the CapacityScheduler's queues if
// yarn.scheduler.configuration.store.class allows it; `yarn schedulerconf` uses them. Responses are plain sentences,
// except for the configuration itself.

func (h *queuesAPI) mountQueuesConf(r chi.Router) {
	r.Get("/scheduler-conf", h.confOnly(
		"This API only supports to retrieve scheduler configuration from a mutable-conf scheduler, underneath scheduler "+
			"CapacityScheduler is not an instance of MutableConfScheduler", h.queuesConf))
	r.Put("/scheduler-conf", h.confOnly(
		"Configuration change only supported by mutable configuration store.", h.mutateQueues))
	r.Post("/scheduler-conf/validate", h.confOnly(
		"Configuration change validation only supported by MutableConfScheduler.", h.validateQueues))
	r.Get("/scheduler-conf/version", h.confOnly(
		"Configuration Version only supported by MutableConfScheduler.", h.queuesVersion))
	r.Get("/scheduler-conf/format", h.confOnly(
		"Scheduler Configuration format only supported by MutableConfScheduler", h.formatQueues))
}

// confOnly admits administrators, and all users while ACLs are off. If the configuration comes from files, the response
// is otherwise.
func (h *queuesAPI) confOnly(otherwise string, serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch {
		case h.s.ACLs() && !h.s.IsAdmin(h.caller(r).User):
			h.refuse(w, r, &refusal{
				http.StatusForbidden, classForbidden, cause + "Only admins can carry out this operation.",
			})
		case !h.s.QueuesMutable():
			h.text(w, r, http.StatusBadRequest, otherwise)
		default:
			serve(w, r)
		}
	}
}

func (h *queuesAPI) queuesConf(w http.ResponseWriter, r *http.Request) {
	values, _ := h.s.QueuesConf()
	h.confDocument(w, r, values)
}

func (h *queuesAPI) confDocument(w http.ResponseWriter, r *http.Request, values map[string]string) {
	names := slices.Sorted(maps.Keys(values))
	h.reply(w, r, http.StatusOK, "configuration", mapped, func(w *writer) {
		w.List("property", len(names), func(w *writer, i int) {
			w.Text("name", names[i])
			w.Text("value", values[names[i]])
		})
	})
}

func (h *queuesAPI) queuesVersion(w http.ResponseWriter, r *http.Request) {
	_, version := h.s.QueuesConf()
	h.reply(w, r, http.StatusOK, "configversion", mapped, func(w *writer) { w.Int("versionID", version) })
}

func (h *queuesAPI) formatQueues(w http.ResponseWriter, r *http.Request) {
	if err := h.s.FormatQueues(r.Context(), h.caller(r)); err != nil {
		h.refuseConf(w, r, "", err)
		return
	}
	h.text(w, r, http.StatusOK, "Configuration under store successfully formatted.")
}

// mutationDoc is a requested change, by its JSON and XML names. Hadoop's command omits the root's name in JSON. The
// form with that name is accepted too.
type mutationDoc struct {
	XMLName xml.Name                    `json:"-" xml:"sched-conf"`
	Remove  webdoc.Many[webdoc.Text]    `json:"remove-queue" xml:"remove-queue"`
	Add     webdoc.Many[queueParamsDoc] `json:"add-queue" xml:"add-queue"`
	Update  webdoc.Many[queueParamsDoc] `json:"update-queue" xml:"update-queue"`
	Global  webdoc.Pairs[webdoc.Text]   `json:"global-updates" xml:"global-updates"`
}

type queueParamsDoc struct {
	Queue  webdoc.Text               `json:"queue-name" xml:"queue-name"`
	Params webdoc.Pairs[webdoc.Text] `json:"params" xml:"params"`
}

// UnmarshalJSON reads the document with or without the name of its root.
func (d *mutationDoc) UnmarshalJSON(b []byte) error {
	type plain mutationDoc
	var doc struct {
		plain
		Root *plain `json:"sched-conf"`
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		return err
	}
	*d = mutationDoc(doc.plain)
	if doc.Root != nil {
		*d = mutationDoc(*doc.Root)
	}
	return nil
}

// mutation reads the body of a change.
func (h *queuesAPI) mutation(w http.ResponseWriter, r *http.Request) (*queueconf.Mutation, error) {
	var doc mutationDoc
	if err := h.decode(w, r, &doc); err != nil {
		return nil, err
	}
	settings := func(p webdoc.Pairs[webdoc.Text]) (out []queueconf.Setting) {
		for _, e := range p.Entry {
			if key := strings.TrimSpace(string(e.Key)); key != "" {
				out = append(out, queueconf.Setting{Key: key, Value: string(e.Value)})
			}
		}
		return out
	}
	list := func(docs webdoc.Many[queueParamsDoc]) (out []queueconf.QueueSettings) {
		for _, q := range docs {
			if q.Queue == "" && len(q.Params.Entry) == 0 {
				continue // null
			}
			out = append(out, queueconf.QueueSettings{
				Queue: strings.TrimSpace(string(q.Queue)), Settings: settings(q.Params),
			})
		}
		return out
	}
	m := &queueconf.Mutation{Add: list(doc.Add), Update: list(doc.Update), Global: settings(doc.Global)}
	for _, path := range doc.Remove {
		if path != "" {
			m.Remove = append(m.Remove, strings.TrimSpace(string(path)))
		}
	}
	return m, nil
}

func (h *queuesAPI) mutateQueues(w http.ResponseWriter, r *http.Request) {
	m, err := h.mutation(w, r)
	if err == nil {
		err = h.s.MutateQueues(r.Context(), h.caller(r), m)
	}
	if err != nil {
		h.refuseConf(w, r, "", err)
		return
	}
	h.text(w, r, http.StatusOK, "Configuration change successfully applied.")
}

func (h *queuesAPI) validateQueues(w http.ResponseWriter, r *http.Request) {
	m, err := h.mutation(w, r)
	var values map[string]string
	if err == nil {
		values, err = h.s.ValidateQueues(r.Context(), m)
	}
	if err != nil {
		h.refuseConf(w, r, "CapacityScheduler configuration validation failed:java.io.IOException: ", err)
		return
	}
	h.confDocument(w, r, values)
}

// refuseConf writes the reason for a rejected change. It is a plain sentence if the change itself is at fault. Other
// errors, such as an unreadable body, are RemoteExceptions.
func (h *queuesAPI) refuseConf(w http.ResponseWriter, r *http.Request, before string, err error) {
	var e *refusal
	if !errors.As(err, &e) && (errors.Is(err, creel.ErrInvalidRequest) || errors.Is(err, creel.ErrNotPermitted) ||
		errors.Is(err, creel.ErrConflict)) {
		h.text(w, r, http.StatusBadRequest, before+err.Error())
		return
	}
	h.refuse(w, r, err)
}

// confChanges lists the changes of the queues' configuration that can be undone, newest last.
func (h *queuesAPI) confChanges(w http.ResponseWriter, r *http.Request) {
	h.confOnly("the queues come from files: "+
		"set yarn.scheduler.configuration.store.class to fs or memory for calls to change them",
		func(w http.ResponseWriter, r *http.Request) {
			history := h.s.QueuesHistory()
			if history == nil {
				history = []*server.ConfChange{}
			}
			body, err := json.Marshal(map[string]any{"changes": history})
			if err != nil {
				h.refuse(w, r, err)
				return
			}
			w.Header()["Content-Type"] = asJSON
			send(w, r, http.StatusOK, body)
		})(w, r)
}

// undoConf undoes one change of the queues' configuration.
func (h *queuesAPI) undoConf(w http.ResponseWriter, r *http.Request) {
	h.confOnly("the queues come from files: there is nothing to undo",
		func(w http.ResponseWriter, r *http.Request) {
			version, err := strconv.ParseInt(param(r, "version"), 10, 64)
			if err != nil {
				err = badRequest(
					strconv.Quote(param(r, "version")) + " is not a version; see /api/v1/scheduler-conf/changes",
				)
			} else {
				err = h.s.UndoQueues(r.Context(), h.caller(r), version)
			}
			if err != nil {
				h.refuseConf(w, r, "", err)
				return
			}
			h.text(w, r, http.StatusOK, "Configuration change successfully undone.")
		})(w, r)
}
