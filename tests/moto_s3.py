"""Rights on moto's S3 server, which by itself lets everybody do everything."""

import json
import math
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import boto3

ANYTHING = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}


@contextmanager
def rights_enforced(endpoint: str) -> Iterator[None]:
    """Only known keys with a policy are let in."""
    _enforce_from(endpoint, 0)
    try:
        yield
    finally:
        _enforce_from(endpoint, math.inf)


def _enforce_from(endpoint: str, requests: float) -> None:
    request = urllib.request.Request(
        f"{endpoint}/moto-api/reset-auth", str(requests).encode(), {"Content-Type": "text/plain"}
    )
    urllib.request.urlopen(request).close()


def user_with_rights(endpoint: str, bucket: str) -> dict[str, str]:
    """Make a bucket, and a user who may use all; the variables with the user's key."""
    login = {"aws_access_key_id": "key", "aws_secret_access_key": "secret", "region_name": "us-east-1"}
    boto3.client("s3", endpoint_url=endpoint, **login).create_bucket(Bucket=bucket)
    iam = boto3.client("iam", endpoint_url=endpoint, **login)
    iam.create_user(UserName=bucket)
    iam.put_user_policy(UserName=bucket, PolicyName="all", PolicyDocument=json.dumps(ANYTHING))
    key = iam.create_access_key(UserName=bucket)["AccessKey"]
    return {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}
