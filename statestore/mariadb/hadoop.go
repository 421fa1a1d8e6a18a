// SPDX-License-Identifier: Apache-2.0

package mariadb

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/statestore/nodes"
)

// kind is a table of Hadoop's. Its rows are nodes, whose data is the message that Hadoop's store in ZooKeeper has.
type kind struct {
	path       string // of the table's node
	table, key string
	// columns are read, times as seconds since 1970. row has their destinations, and makes the node of them.
	columns string
	row     func() (dest []any, node func(id string) (proto.Message, nodes.Stat))
	// set are the columns that a change writes, and their values.
	set     string
	values  func(data []byte) ([]any, error)
	created string // the column of a new row's time; "": none
}

var kinds = []*kind{
	{
		path: "/applications", table: "applicationsHomeSubCluster", key: "applicationId",
		columns: "homeSubCluster, CAST(UNIX_TIMESTAMP(createTime) AS SIGNED)", row: homeRow,
		set: "homeSubCluster", values: homeValues,
		created: "createTime",
	},
	{
		path: "/memberships", table: "membership", key: "subClusterId",
		columns: "amRMServiceAddress, clientRMServiceAddress, rmAdminServiceAddress, rmWebServiceAddress, " +
			"CAST(UNIX_TIMESTAMP(lastHeartBeat) AS SIGNED), state, lastStartTime, capability",
		row: memberRow,
		set: "amRMServiceAddress, clientRMServiceAddress, rmAdminServiceAddress, rmWebServiceAddress, " +
			"lastHeartBeat, state, lastStartTime, capability",
		values: memberValues,
	},
	{
		path: "/policies", table: "policies", key: "queue", columns: "policyType, params", row: policyRow,
		set: "policyType, params", values: policyValues,
	},
	{
		path: "/reservation", table: "reservationsHomeSubCluster", key: "reservationId", columns: "homeSubCluster",
		row: bookingRow, set: "homeSubCluster", values: bookingValues,
	},
}

// kindOf returns the table of a path, and the row's key; nil: it is a node of creel's.
func kindOf(path string) (*kind, string) {
	for _, k := range kinds {
		if id, ok := strings.CutPrefix(path, k.path); ok && (id == "" || id[0] == '/') {
			return k, strings.TrimPrefix(id, "/")
		}
	}
	return nil, ""
}

// read reads a row. Its version is made of its content.
func (k *kind) read(ctx context.Context, q querier, id string, l lock) ([]byte, *nodes.Stat, error) {
	dest, node := k.row()
	var is string
	query := "SELECT " + k.key + ", " + k.columns + " FROM " + k.table + " WHERE " + k.key + " = ?" + string(l)
	err := q.QueryRowContext(ctx, query, id).Scan(append([]any{&is}, dest...)...)
	if errors.Is(err, sql.ErrNoRows) || err == nil && is != id { // the key ignores the case
		return nil, nil, nodes.ErrNoNode
	}
	if err != nil {
		return nil, nil, err
	}
	m, stat := node(id)
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	h := fnv.New64a()
	fmt.Fprintf(h, "%d ", stat.Created)
	h.Write(data)
	stat.Version = int64(h.Sum64() & math.MaxInt64)
	stat.Changed = stat.Version
	return data, &stat, err
}

// apply changes a row, which was compared and is locked.
func (k *kind) apply(ctx context.Context, tx querier, us int64, id string, op *nodes.Op) error {
	switch op.Kind {
	case nodes.OpDelete:
		_, err := tx.ExecContext(ctx, "DELETE FROM "+k.table+" WHERE "+k.key+" = ?", id)
		return err
	case nodes.OpCreate, nodes.OpSet:
	default:
		return nil
	}
	values, err := k.values(op.Data)
	if err != nil {
		return err
	}
	places := make([]string, len(values))
	for i, v := range values {
		places[i] = "?"
		if at, ok := v.(time.Time); ok {
			places[i], values[i] = "FROM_UNIXTIME(?)", min(at.Unix(), us/1e6)
		}
	}
	if k.table == "membership" {
		if err := freeStart(ctx, tx, id, values); err != nil {
			return err
		}
	}
	if op.Kind == nodes.OpCreate {
		columns := k.key + ", " + k.set
		if k.created != "" { // not later than the node of creel's that is created with it
			columns, places, values = columns+", "+k.created, append(places, "FROM_UNIXTIME(?)"), append(values, us/1e6)
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO "+k.table+" ("+columns+") VALUES (?, "+
			strings.Join(places, ", ")+")", append([]any{id}, values...)...)
		if isCode(err, duplicate) {
			return k.taken(ctx, tx, id)
		}
		return k.tooLong(id, err)
	}
	for i, column := range strings.Split(k.set, ", ") {
		places[i] = column + " = " + places[i]
	}
	_, err = tx.ExecContext(ctx,
		"UPDATE "+k.table+" SET "+strings.Join(places, ", ")+" WHERE "+k.key+" = ?", append(values, id)...)
	return k.tooLong(id, err)
}

// taken is the error for a row that is there already: inserted meanwhile, or with a key that differs by case alone.
func (k *kind) taken(ctx context.Context, tx querier, id string) error {
	var is string
	err := tx.QueryRowContext(ctx, "SELECT "+k.key+" FROM "+k.table+" WHERE "+k.key+" = ?"+string(shared), id).Scan(&is)
	if err == nil && is != id {
		return &creel.Error{
			Kind: creel.ErrInvalidRequest, What: "two names differ only by case: " + id + " and " + is,
			Why: "Hadoop's table " + k.table + " does not distinguish them", Try: "choose another name",
		}
	}
	return fmt.Errorf("%w: %s", nodes.ErrConflict, id)
}

func (k *kind) tooLong(id string, err error) error {
	if !isCode(err, tooLong) {
		return err
	}
	return &creel.Error{
		Kind: creel.ErrInvalidRequest, What: "record too large for Hadoop's table " + k.table,
		Why: fmt.Sprintf("%s: %v", id, err), Try: "shorten it, or use a store on Redis",
	}
}

func homeRow() ([]any, func(string) (proto.Message, nodes.Stat)) {
	var home string
	var created int64
	return []any{&home, &created}, func(id string) (proto.Message, nodes.Stat) {
		m := &yarnpb.ApplicationHomeSubClusterProto{
			HomeSubCluster: &yarnpb.SubClusterIdProto{Id: proto.String(home)}, CreateTime: proto.Int64(created * 1000),
		}
		if app, err := creel.ParseApplicationID(id); err == nil {
			m.ApplicationId = &yarnpb.ApplicationIdProto{
				Id: proto.Int32(app.ID), ClusterTimestamp: proto.Int64(app.ClusterTimestamp),
			}
		}
		at := time.Unix(created, 0).UTC()
		return m, nodes.Stat{Created: at.UnixMicro(), Ctime: at, Mtime: at}
	}
}

func homeValues(data []byte) ([]any, error) {
	var m yarnpb.ApplicationHomeSubClusterProto
	err := proto.Unmarshal(data, &m)
	return []any{m.GetHomeSubCluster().GetId()}, err
}

func bookingRow() ([]any, func(string) (proto.Message, nodes.Stat)) {
	var home string
	return []any{&home}, func(string) (proto.Message, nodes.Stat) {
		at := time.Now().UTC() // the row has no time
		return &yarnpb.SubClusterIdProto{Id: proto.String(home)}, nodes.Stat{Ctime: at, Mtime: at}
	}
}

func bookingValues(data []byte) ([]any, error) {
	var m yarnpb.SubClusterIdProto
	err := proto.Unmarshal(data, &m)
	return []any{m.GetId()}, err
}

func policyRow() ([]any, func(string) (proto.Message, nodes.Stat)) {
	var manager string
	var params []byte
	return []any{&manager, &params}, func(id string) (proto.Message, nodes.Stat) {
		return &yarnpb.SubClusterPolicyConfigurationProto{
			Queue: proto.String(id), Type: proto.String(manager), Params: bytesOf(params),
		}, nodes.Stat{}
	}
}

func policyValues(data []byte) ([]any, error) {
	var m yarnpb.SubClusterPolicyConfigurationProto
	err := proto.Unmarshal(data, &m)
	return []any{m.GetType(), bytesOf(m.Params)}, err
}

func memberRow() ([]any, func(string) (proto.Message, nodes.Stat)) {
	var scheduler, client, admin, web, state string
	var heartbeat int64
	var start sql.NullInt64
	var capability sql.NullString
	dest := []any{&scheduler, &client, &admin, &web, &heartbeat, &state, &start, &capability}
	return dest, func(id string) (proto.Message, nodes.Stat) {
		at := time.Unix(heartbeat, 0).UTC()
		m := &yarnpb.SubClusterInfoProto{
			SubClusterId:       &yarnpb.SubClusterIdProto{Id: proto.String(id)},
			AMRMServiceAddress: &scheduler, ClientRMServiceAddress: &client, RMAdminServiceAddress: &admin,
			RMWebServiceAddress: &web, LastHeartBeat: proto.Int64(at.UnixMilli()), LastStartTime: &start.Int64,
			Capability: &capability.String,
		}
		if n, ok := yarnpb.SubClusterStateProto_value[state]; ok {
			m.State = yarnpb.SubClusterStateProto(n).Enum()
		}
		return m, nodes.Stat{Ctime: time.UnixMilli(start.Int64).UTC(), Mtime: at}
	}
}

// mostCapability is the size of the column, in characters.
const mostCapability = 6000

func memberValues(data []byte) ([]any, error) {
	var m yarnpb.SubClusterInfoProto
	err := proto.Unmarshal(data, &m)
	capability := cmp.Or(m.GetCapability(), "{}") // Hadoop's Routers reject a member without
	if len(capability) > mostCapability {
		capability = "{}"
	}
	return []any{
		m.GetAMRMServiceAddress(), m.GetClientRMServiceAddress(), m.GetRMAdminServiceAddress(),
		m.GetRMWebServiceAddress(),
		time.UnixMilli(m.GetLastHeartBeat()), m.GetState().String(), m.GetLastStartTime(), capability,
	}, err
}

// freeStart replaces the start time of a member by none if another member has it: the table has each once.
func freeStart(ctx context.Context, tx querier, id string, values []any) error {
	const start = 6 // its place in memberValues
	var others int
	err := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM membership WHERE lastStartTime = ? AND subClusterId <> ?",
		values[start], id).Scan(&others)
	if others > 0 {
		values[start] = nil
	}
	return err
}
