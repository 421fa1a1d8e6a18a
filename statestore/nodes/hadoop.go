// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// readApplicationHome reads Hadoop's record of an application, "" without a home. Hadoop 3.3 has the home's id alone.
func readApplicationHome(data []byte) (creel.SubclusterID, error) {
	if len(data) == 0 {
		return "", nil
	}
	var m yarnpb.ApplicationHomeSubClusterProto
	if err := proto.Unmarshal(data, &m); err == nil && m.HomeSubCluster != nil {
		return validHome(m.GetHomeSubCluster().GetId())
	}
	return readReservationHome(data)
}

// applicationHome writes Hadoop's record of an application, which keeps what creel does not know.
func applicationHome(before []byte, id string, home creel.SubclusterID, claimed time.Time) ([]byte, error) {
	app, err := creel.ParseApplicationID(id)
	if err != nil {
		return nil, err
	}
	var m yarnpb.ApplicationHomeSubClusterProto
	if len(before) > 0 && (proto.Unmarshal(before, &m) != nil || m.HomeSubCluster == nil) {
		return reservationHome(nil, id, home, claimed) // Hadoop 3.3's
	}
	if m.CreateTime == nil {
		m.CreateTime = proto.Int64(claimed.UnixMilli())
	}
	m.ApplicationId = &yarnpb.ApplicationIdProto{
		Id: proto.Int32(app.ID), ClusterTimestamp: proto.Int64(app.ClusterTimestamp),
	}
	m.HomeSubCluster = &yarnpb.SubClusterIdProto{Id: proto.String(string(home))}
	return proto.Marshal(&m)
}

// readReservationHome reads Hadoop's record of a reservation, "" without a home.
func readReservationHome(data []byte) (creel.SubclusterID, error) {
	var m yarnpb.SubClusterIdProto
	if err := proto.Unmarshal(data, &m); err != nil {
		return "", statestore.Unreadable("a home of Hadoop's", err)
	}
	return validHome(m.GetId())
}

func validHome(id string) (creel.SubclusterID, error) {
	if id == "" {
		return "", nil
	}
	return creel.SubclusterID(id), subcluster.ValidID(creel.SubclusterID(id))
}

func reservationHome(_ []byte, _ string, home creel.SubclusterID, _ time.Time) ([]byte, error) {
	return proto.Marshal(&yarnpb.SubClusterIdProto{Id: proto.String(string(home))})
}
