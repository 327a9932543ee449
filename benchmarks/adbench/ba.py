"""Bundle adjustment: residuals of observations, and the blocks of their Jacobian. ADBench's objective BA."""

import numpy as np

from myia_relay import relay


def rotated(axis, x):
    """Rodrigues' formula: `x` rotated by the angle |axis| around `axis`."""
    square = np.sum(axis * axis)
    if square == 0.0:
        return x + np.cross(axis, x)
    angle = np.sqrt(square)
    unit = axis / angle
    cos, sin = np.cos(angle), np.sin(angle)
    return x * cos + np.cross(unit, x) * sin + unit * (np.dot(unit, x) * (1.0 - cos))


def reprojection(camera, point, weight, feature):
    """The weighted distance of a projected point from where it was seen, (2,).

    Args:
        camera: (11,): rotation, centre, focal length, principal point, radial distortion.
        point: (3,).
        weight: a number.
        feature: (2,).
    """
    seen = rotated(camera[:3], point - camera[3:6])
    projected = seen[:2] / seen[2]
    square = np.sum(projected * projected)
    distortion = 1.0 + camera[9] * square + camera[10] * square * square
    return weight * (projected * distortion * camera[6] + camera[7:9] - feature)


def weight_residual(weight):
    """What keeps a weight near 1."""
    return 1.0 - weight * weight


@relay
def objective(cameras, points, weights, observations, features):
    """All residuals: of reprojection (p, 2), of weights (p,).

    Args:
        cameras: (n, 11).
        points: (m, 3).
        weights: (p,).
        observations: (p, 2) int64, which camera saw which point.
        features: (p, 2).
    """
    seen = relay.vmap(reprojection)(cameras[observations[:, 0]], points[observations[:, 1]], weights, features)
    return seen, weight_residual(weights)


@relay
def jacobian(cameras, points, weights, observations, features):
    """All residuals, and what is not zero in their Jacobian.

    Returns:
        The residuals (p, 2) and (p,), the derivatives of the former by camera, point and weight of the observation
        (p, 2, 15), and of the latter by their weight (p,).
    """

    def block(camera, point, weight, feature):
        by_camera, by_point, by_weight = relay.jacobian(reprojection, (0, 1, 2))(camera, point, weight, feature)
        return np.concatenate((by_camera, by_point, by_weight[:, None]), axis=1)

    blocks = relay.vmap(block)(cameras[observations[:, 0]], points[observations[:, 1]], weights, features)
    by_weights = relay.vmap(relay.grad(weight_residual))(weights)
    return *objective(cameras, points, weights, observations, features), blocks, by_weights
