"""Hand tracking: distances of points from a posed, skinned model, and their dense Jacobian. ADBench's objective Hand."""

from typing import NamedTuple

import numpy as np

from myia_relay import relay


class Model(NamedTuple):
    """A hand: V vertices on B bones.

    Attributes:
        parents: of each bone, -1 for the root; a parent comes before its children.
        base_relative, inverse_base_absolute: (B, 4, 4).
        positions: (V, 3).
        weights: (V, B).
    """

    parents: tuple[int, ...]
    base_relative: np.ndarray
    inverse_base_absolute: np.ndarray
    positions: np.ndarray
    weights: np.ndarray


JOINTS = 4
"""Bones of a finger: one that is fixed, one with two angles, two with one."""


def rotation_x(angle):
    """Around the first axis."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


def rotation_z(angle):
    """Around the third axis."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def rotation(axis):
    """By the angle |axis| around `axis`."""
    square = np.sum(axis * axis)
    if square < 1e-8:
        return np.eye(3)
    angle = np.sqrt(square)
    x, y, z = axis / angle
    s, c = np.sin(angle), np.cos(angle)
    return np.array(
        [
            [x * x + (1.0 - x * x) * c, x * y * (1.0 - c) - z * s, x * z * (1.0 - c) + y * s],
            [x * y * (1.0 - c) + z * s, y * y + (1.0 - y * y) * c, y * z * (1.0 - c) - x * s],
            [x * z * (1.0 - c) - y * s, z * y * (1.0 - c) + x * s, z * z + (1.0 - z * z) * c],
        ]
    )


def bone_rotation(theta, bone):
    """What the pose does to a bone of a finger."""
    finger, joint = (bone - 1) // JOINTS, (bone - 1) % JOINTS
    first = 6 + JOINTS * finger
    if joint == 1:
        return rotation_z(theta[first + 1]) @ rotation_x(theta[first])
    return rotation_x(theta[first + joint])


def bone_transforms(theta, model):
    """Where each bone takes the vertices that hang on it: (B, 4, 4)."""
    count = len(model.parents)
    absolute = np.zeros((count, 4, 4))
    transforms = np.zeros((count, 4, 4))
    for bone in range(count):
        relative = model.base_relative[bone]
        if 0 < bone < count - 1 and (bone - 1) % JOINTS > 0:
            iteration = np.eye(4)
            iteration[:3, :3] = bone_rotation(theta, bone)
            relative = relative @ iteration
        parent = model.parents[bone]
        absolute[bone] = relative if parent < 0 else absolute[parent] @ relative
        transforms[bone] = absolute[bone] @ model.inverse_base_absolute[bone]
    return transforms


def posed_vertices(theta, model):
    """The vertices of the model in the pose `theta`: (V, 3)."""
    transforms = bone_transforms(theta, model)
    posed = np.zeros_like(model.positions)
    for bone in range(len(model.parents)):
        moved = model.positions @ transforms[bone, :3, :3].T + transforms[bone, :3, 3]
        posed = posed + model.weights[:, bone, None] * moved
    return posed @ rotation(theta[:3]).T + theta[3:6]


@relay
def simple(theta, model, corners, points):
    """Distances of the points from their vertices, (N, 3).

    Args:
        theta: (26,): rotation, translation, and the angles of the fingers.
        model: a Model.
        corners: (N,), a vertex for each point.
        points: (N, 3).
    """
    return points - posed_vertices(theta, model)[corners]


@relay
def complicated(theta, us, model, corners, points):
    """Distances of the points from their places in triangles, (N, 3).

    Args:
        theta, model, points: as above.
        us: (N, 2), the places.
        corners: (N, 3), the vertices of the triangles.
    """
    posed = posed_vertices(theta, model)
    u, v = us[:, 0, None], us[:, 1, None]
    return points - (u * posed[corners[:, 0]] + v * posed[corners[:, 1]] + (1.0 - u - v) * posed[corners[:, 2]])


@relay
def simple_jacobian(theta, model, corners, points):
    """The residuals and their Jacobian by the pose, (26, 3 N): column by column."""
    by_theta = relay.jacobian(simple)(theta, model, corners, points)
    return simple(theta, model, corners, points), by_theta.reshape(-1, len(theta)).T


@relay
def complicated_jacobian(theta, us, model, corners, points):
    """The residuals and their Jacobian, (28, 3 N): by the two coordinates of the point's own place, then by the pose.

    No residual depends on the place of another point, so that one direction serves the coordinates of all.
    """

    def along(direction):
        directions = np.zeros_like(us) + direction
        return relay.jvp(lambda places: complicated(theta, places, model, corners, points), (us,), (directions,))[1]

    by_us = relay.vmap(along)(np.eye(2))
    by_theta = relay.jacobian(complicated)(theta, us, model, corners, points)
    columns = np.concatenate((by_us.reshape(2, -1), by_theta.reshape(-1, len(theta)).T))
    return complicated(theta, us, model, corners, points), columns
