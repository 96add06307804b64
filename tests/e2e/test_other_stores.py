"""The same study on PostgreSQL, and with its artefacts on S3."""

from __future__ import annotations

from pathlib import Path

import pytest
from places import STUDY, Place

pytestmark = pytest.mark.slow


def test_postgresql_holds_the_same(undisturbed: Place, postgres_url: str, tmp_path: Path) -> None:
    place = Place(tmp_path, postgres_url)
    place.run("run", str(STUDY), "--executor", "inline")
    assert place.contents() == undisturbed.contents()


@pytest.mark.cluster
def test_s3_holds_the_same(undisturbed: Place, s3_endpoint: str, tmp_path: Path) -> None:
    import boto3

    account = {
        "AWS_ENDPOINT_URL": s3_endpoint,
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    credentials = {"aws_access_key_id": "key", "aws_secret_access_key": "secret", "region_name": "us-east-1"}
    boto3.client("s3", endpoint_url=s3_endpoint, **credentials).create_bucket(Bucket="study")
    place = Place(tmp_path, more={**account, "CREAMTEA_ARTEFACTS": "s3://study/artefacts"})
    place.run("run", str(STUDY))
    assert place.contents() == undisturbed.contents()
    assert not (place.home / "artefacts").exists()
